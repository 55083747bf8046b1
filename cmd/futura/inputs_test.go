package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInputsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := t.TempDir()
	module := filepath.Join(dir, "copy.wasm")
	require.NoError(t, os.WriteFile(module, copying(), 0o600))
	s.ok("function", "put", module, "--alias", "copy")
	first := s.ok("submit", "wasm:copy", "--args", "one,")
	second := s.ok("submit", "wasm:copy", "--args", "two", "--delay", "1h")
	both := s.ok("submit", "wasm:copy", "--stdin-of", first, "--stdin-of", second, "--stdin-of", first)
	later := s.ok("submit", "go:later", "--after", both)
	quoted := s.ok("submit", "go:later", "--codec", "json", "--args", `[{"$future":"`+both+`"}]`)

	out := s.ok("get", both)
	require.Regexp(t, `(?m)^state +blocked$`, out)
	require.Regexp(t, `(?m)^inputs +2: `+first+`, `+second+`$`, out)
	require.Regexp(t, `(?m)^waits for +\S+, \S+$`, out)
	require.Regexp(t, `(?m)^used by +\S+, \S+$`, out)
	require.Contains(t, s.ok("get", quoted, "--json"), `"waits_for": [`)
	require.Contains(t, s.ok("explain", later), both)
	require.Contains(t, s.ok("list", "--state", "blocked"), both)
	require.Regexp(t, `queue default +3 blocked, 1 ready, 1 delayed`, s.ok("cluster", "show"))
	target := filepath.Join(dir, "result")
	_, e := s.run(exitTimeout, "", "get", both, "--output", target)
	require.Contains(t, e, "it is blocked. Wait for it")

	s.ok("retry", second)
	require.Equal(t, "one,two", s.ok("await", both), "repeated inputs count once")
	require.Contains(t, s.ok("get", both, "--output", target), "7 bytes in "+target)
	content, err := os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "one,two", string(content))
	require.Equal(t, "one,two", s.ok("get", both, "--output", "-"))
	_, e = s.run(exitUsage, "", "get", both, "--output", dir)
	require.Contains(t, e, "is a directory")
	s.run(exitUsage, "", "get", both, "--output", filepath.Join(dir, "none", "x"))
	s.ok("cancel", later)
	_, e = s.run(exitFailed, "", "get", later, "--output", target)
	require.Contains(t, e, "has no result (cancelled)")
	require.Contains(t, s.ok("check"), "0 problems")
}

func TestMistakesWithInputs(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	const missing = "01995b4e-6f3a-7c1e-9d2b-0123456789ab"
	for _, c := range []struct {
		says string
		args []string
	}{
		{"--after: not a future id", []string{"--after", "x"}},
		{"--stdin-of: not a future id", []string{"--stdin-of", "x"}},
		{missing + ": submit it first", []string{"--stdin-of", missing}},
		{missing + ": submit it first", []string{"--codec", "json", "--args", `{"$future":"` + missing + `"}`}},
		{"--stdin-of is the whole input", []string{"--stdin-of", missing, "--after", missing}},
		{"--stdin-of is the whole input", []string{"--stdin-of", missing, "--args", "a"}},
		{"--no-rebuild needs --as-object", []string{"--no-rebuild"}},
		{"--wait-timeout needs --wait", []string{"--wait-timeout", "5s"}},
		{"or how long from now, such as 30m", []string{"--deadline", "30"}},
		{"it has passed", []string{"--deadline", "-30m"}},
	} {
		_, e := s.run(exitUsage, "", append([]string{"submit", "go:f"}, c.args...)...)
		require.Contains(t, e, c.says)
	}
	_, e := s.run(exitUsage, "", "get", missing, "--output", "-", "--json")
	require.Contains(t, e, "excludes --json")
	for _, command := range [][]string{
		{"actor", "call", "basket/a", "add"}, {"tasks", "submit", "write", "--input", "1"},
	} {
		_, e := s.run(exitUsage, "", append(command, "--wait-timeout", "5s")...)
		require.Contains(t, e, "--wait-timeout needs --wait")
	}
}

func TestBlockedFuturesInBulk(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	first := s.ok("submit", "go:none")
	for range 3 {
		s.ok("submit", "go:none", "--after", first)
	}
	out, _ := s.run(exitOK, "", "cancel", "--state", "blocked")
	require.Contains(t, out, "3 cancelled")
	require.Contains(t, s.ok("list", "--state", "ready"), first)
}
