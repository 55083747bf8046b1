package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi"
)

// TestUniqueFromTheCommandLine submits unique futures, and shows and releases keys.
func TestUniqueFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	first := s.ok("submit", "go:f", "--args", "a", "--unique", "k")
	_, e := s.run(exitUsage, "", "submit", "go:f", "--args", "b", "--unique", "k")
	require.Contains(t, e, first)
	require.Contains(t, e, "other arguments")
	out, e := s.run(exitOK, "", "submit", "go:f", "--args", "b", "--unique", "k", "--on-conflict", "return")
	require.Contains(t, out, first)
	require.Contains(t, e, "what differs: arguments")
	require.Regexp(t, `(?m)^unique +by "k"$`, s.ok("get", first))
	require.Contains(t, s.ok("explain", first), `unique key "k" is accepted until it is over`)
	out, e = s.run(exitOK, "", "submit", "go:f", "--args", "c", "--unique", "k", "--on-conflict", "replace",
		"--unique-until", "ever")
	require.Contains(t, e, "replaces future "+first)
	second := out[:len(first)]
	require.Contains(t, s.ok("get", first), "replaced by future "+second)
	_, e = s.run(exitUsage, "", "unique", "release", "k")
	require.Contains(t, e, "cancel it first")
	s.ok("cancel", second)
	require.Contains(t, s.ok("explain", second), "unless the key was released")
	var holder httpapi.Holder
	require.NoError(t, json.Unmarshal([]byte(s.ok("unique", "show", "k", "--json")), &holder))
	require.Equal(t, second, holder.ID.String())
	require.Equal(t, "ever", holder.Until)
	require.Contains(t, s.ok("unique", "release", "--name", string(holder.Name)), second)
	_, e = s.run(exitNotFound, "", "unique", "show", "k")
	require.Contains(t, e, `key "k"`)
	require.NotContains(t, e, string(holder.Name))
	_, e = s.run(exitNotFound, "", "unique", "release", "k")
	require.Contains(t, e, `key "k"`)
	s.ok("submit", "go:f", "--unique-by", "function,queue", "--unique-for", "1h")
	s.run(exitUsage, "", "submit", "go:f", "--args", "other", "--unique-by", "function,queue")
	for says, args := range map[string][]string{
		"say by what": {"submit", "go:f", "--on-conflict", "return"}, "KEY or --name": {"unique", "show"},
		"use function": {"submit", "go:f", "--unique-by", "label"}, "use refuse": {"submit", "go:f", "--unique", "x",
			"--on-conflict", "drop"}, "use end": {"submit", "go:f", "--unique", "x", "--unique-until", "later"},
	} {
		_, e := s.run(exitUsage, "", args...)
		require.Contains(t, e, says)
	}
	require.Contains(t, s.ok("check"), "0 problems")
}
