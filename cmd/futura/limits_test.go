package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi"
)

// TestLimitsFromTheCommandLine sets limits, exceeds one, and takes it away.
func TestLimitsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("submit", "go:f")
	require.Regexp(t, `(?m)^pending +1 +2$`, s.ok("limits", "set", "--pending", "2", "--per-second", "1000"))
	s.ok("submit", "go:f")
	_, e := s.run(exitStore, "", "submit", "go:f")
	require.Contains(t, e, "2 futures are pending, of at most 2")
	require.Contains(t, e, "come back in 250ms")
	for _, args := range [][]string{
		{"submit", "go:f", "--wait"}, {"submit", "go:f"}, {"tasks", "submit", "all", "--input", "1", "--target", "x"},
	} {
		s.ok("lane", "set", "all", "--bundle", "go:f")
		_, e := s.run(exitTimeout, "", append(args, "--wait-for-room", "--wait-timeout", "1s")...)
		require.Contains(t, e, "2 futures are pending, of at most 2", "it waits for room no longer than that")
	}
	var view httpapi.LimitsView
	require.NoError(t, json.Unmarshal([]byte(s.ok("limits", "show", "--json")), &view))
	require.Equal(t, httpapi.Limits{Pending: 2, PerSecond: 1000}, view.Limits)
	require.EqualValues(t, 2, view.Used.Pending)
	require.Positive(t, *view.Used.Bytes)
	require.Regexp(t, `(?m)^bytes +\d+ +1073741824$`, s.ok("limits", "set", "--bytes", "1073741824"))
	require.Regexp(t, `(?m)^pending +2 +no limit$`, s.ok("limits", "set", "--pending", "0"))
	s.ok("submit", "go:f", "--wait-for-room")
	_, e = s.run(exitUsage, "", "limits", "set")
	require.Contains(t, e, "say what to limit")
	_, e = s.run(exitUsage, "", "limits", "set", "--running", "-1")
	require.Contains(t, e, "none may be negative")
	require.Contains(t, s.ok("check"), "0 problems")
}
