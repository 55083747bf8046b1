package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/futures/httpapi"
)

func TestFunctionsAreNamedAndRemoved(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "copy.wasm")
	require.NoError(t, os.WriteFile(file, copying(), 0o600))
	function := s.ok("function", "put", file, "--alias", "one")
	require.Equal(t, function, s.ok("function", "alias", "two", "one"))
	require.Equal(t, function, s.ok("function", "alias", "wasm:three", "wasm:two"))
	require.Regexp(t, `^`+function+`  \d+ bytes  one three two$`, s.ok("function", "list"))
	require.JSONEq(t, `{"outcome":"removed","alias":"three"}`, s.ok("function", "alias", "three", "--rm", "--json"))
	for _, args := range [][]string{{"a"}, {"a", "b", "--rm"}, {"a", "b", "c"}, {"no name", "one"}} {
		s.run(exitUsage, "", append([]string{"function", "alias"}, args...)...)
	}
	s.run(exitNotFound, "", "function", "alias", "a", "none")
	s.run(exitNotFound, "", "function", "alias", "none", "--rm")
	s.run(exitNotFound, "", "function", "rm", "none")

	id := s.ok("submit", "wasm:two")
	_, e := s.run(exitUsage, "", "function", "rm", "one")
	require.Contains(t, e, "by futures that are not over: 1, such as "+id)
	require.Contains(t, e, "--force")
	s.ok("cancel", id)
	require.Equal(t, "removed "+function+" with the aliases one two", s.ok("function", "rm", "one"))
	require.Empty(t, s.ok("function", "list"))

	s.ok("function", "put", file)
	id = s.ok("submit", function)
	var removed httpapi.Function
	require.NoError(t, json.Unmarshal([]byte(s.ok("function", "rm", function, "--force", "--json")), &removed))
	require.Equal(t, function, removed.Function)
	_, e = s.run(exitFailed, "", "await", id)
	require.Contains(t, e, "unloadable")
	require.Contains(t, s.ok("check"), "0 problems")
}

// TestAFileWithoutEndIsNoFunction puts a device, of which no more is read than a module may have.
func TestAFileWithoutEndIsNoFunction(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	_, e := s.run(exitUsage, "", "function", "put", "/dev/zero")
	require.Contains(t, e, fmt.Sprint(modules.MaxSize))
	large := filepath.Join(t.TempDir(), "large.wasm")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, modules.MaxSize+1))
	_, e = s.run(exitUsage, "", "function", "put", large)
	require.Contains(t, e, fmt.Sprint(modules.MaxSize))
}
