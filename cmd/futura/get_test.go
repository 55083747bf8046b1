package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura"
	"github.com/futura-run/futura/futures"
)

// TestGetShowsTypedValues reads what a program with a typed function has submitted and got.
func TestGetShowsTypedValues(t *testing.T) {
	t.Parallel()
	type person struct {
		Name string
		Age  int
	}
	s := newShell(t)
	node, err := futura.Open(t.Context(), s.store)
	require.NoError(t, err)
	greet := futures.Define[person, []string]("greet")
	f, err := greet.Submit(t.Context(), node.Client, person{"Ada", 36})
	require.NoError(t, err)
	require.NoError(t, node.Close())
	require.Regexp(t, `(?m)^arguments +15 bytes of msgpack: \{"Age":36,"Name":"Ada"\}$`, s.ok("get", f.ID().String()))

	file := filepath.Join(t.TempDir(), "value")
	for value, want := range map[string]string{
		"\x92\x01\xa1x": `4 bytes of msgpack: [1,"x"]`,
		"\x01 and more": `10 bytes: and more`,
		"\xa9abc":       `4 bytes: �abc`,
	} {
		require.NoError(t, os.WriteFile(file, []byte(value), 0o600))
		id := s.ok("put", file, "--codec", "msgpack")
		require.Contains(t, s.ok("get", id), want)
	}
	require.NoError(t, os.WriteFile(file, []byte("\x01"), 0o600))
	require.NotContains(t, s.ok("get", s.ok("put", file)), "msgpack")
}
