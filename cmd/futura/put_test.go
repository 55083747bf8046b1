package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPutFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "value")
	require.NoError(t, os.WriteFile(file, []byte("a value"), 0o600))
	module := filepath.Join(dir, "copy.wasm")
	require.NoError(t, os.WriteFile(module, copying(), 0o600))
	s.ok("function", "put", module, "--alias", "copy")
	id := s.ok("put", file, "--label", "l", "--key", "k", "--tag", "t")
	require.Equal(t, "a value", s.ok("await", id))
	require.Equal(t, "a value", s.ok("submit", "wasm:copy", "--stdin-of", id, "--wait"))
	var said struct {
		ID      string
		Existed bool
		Bytes   int64
	}
	require.NoError(t, json.Unmarshal([]byte(s.ok("put", file, "--key", "k", "--json")), &said))
	require.Equal(t, id, said.ID)
	require.True(t, said.Existed)
	require.EqualValues(t, 7, said.Bytes)
	out, _ := s.run(exitOK, "from a pipe", "put", "-")
	require.Equal(t, "from a pipe", s.ok("await", out[:len(id)]))
	_, e := s.run(exitUsage, "", "retry", id)
	require.Contains(t, e, "it was put")
	require.Contains(t, s.ok("list", "--function", "put", "--json"), id)
	require.Contains(t, s.ok("list", "--tag", "t", "--json"), id)
	require.Contains(t, s.ok("explain", id), "realized")
	for says, args := range map[string][]string{
		"is a directory": {dir}, "no such file": {file + "-none"}, "exclude each other": {file, "--stored", "--as-object"},
		"--key is empty": {file, "--key", ""}, "codec": {file, "--codec", "xml"},
	} {
		_, e := s.run(exitUsage, "", append([]string{"put"}, args...)...)
		require.Contains(t, e, says)
	}
	require.Contains(t, s.ok("pin", id, "--as", "report"), "pinned")
	require.Regexp(t, `(?m)^pinned by +report$`, s.ok("get", id))
	_, e = s.run(exitUsage, "", "delete", id)
	require.Contains(t, e, "pinned by report")
	s.ok("unpin", id, "--as", "report")
	_, e = s.run(exitUsage, "", "pin", id)
	require.Contains(t, e, "--as names who pins")
	for _, use := range []string{"clone", "transfer"} {
		_, e = s.run(exitUsage, "", use, id)
		require.Contains(t, e, "is stored with the cluster")
	}
	s.ok("delete", "--function", "put")
	_, e = s.run(exitStore, "", "put", file, "--as-object")
	require.Contains(t, e, "no worker takes an object")
	require.Contains(t, s.ok("check"), "0 problems")
}
