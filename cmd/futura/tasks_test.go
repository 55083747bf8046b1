package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi"
)

func TestTasksFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("lane", "set", "single")
	require.Equal(t, "write: width 1, go:write runs up to 100 together, of 1000000 bytes, by /table",
		s.ok("lane", "set", "write", "--bundle", "go:write", "--target", "/table"))
	require.Equal(t, "write: width 2, go:write runs up to 100 together, of 1000000 bytes, by /table",
		s.ok("lane", "set", "write", "--width", "2"), "what is not named stays")
	s.ok("lane", "set", "plain", "--bundle", "go:write")
	const row = `{"table": "users", "value": 1}`
	id := s.ok("tasks", "submit", "write", "--input", row, "--key", "k")
	again, e := s.run(0, row, "tasks", "submit", "write", "--input-file", "-", "--key", "k", "--json")
	require.Contains(t, e, "exists")
	var made struct{ ID, Target string }
	require.NoError(t, json.Unmarshal([]byte(again), &made))
	require.Equal(t, id, made.ID)
	require.Equal(t, "users", made.Target)
	other := s.ok("tasks", "submit", "plain", "--input", "[1]", "--target", "all")
	require.Regexp(t, `(?m)^`+id+` +write +users +created +0`, s.ok("tasks", "get", id, other))
	require.Equal(t, id+" cancelled", s.ok("tasks", "cancel", id, "--reason", "why"))
	var views []httpapi.TaskView
	require.NoError(t, json.Unmarshal([]byte(s.ok("tasks", "get", id, "--json")), &views))
	require.EqualValues(t, "failed", views[0].Status)
	require.Contains(t, s.ok("tasks", "get", id), "why")
	future := s.ok("submit", "go:write")
	for _, command := range []string{"get", "cancel"} {
		_, e := s.run(exitNotFound, "", "tasks", command, future)
		require.Contains(t, e, "no handler")
	}
	_, e = s.run(exitNotFound, "", "tasks", "submit", "none", "--input", "{}")
	require.Contains(t, e, "futura lane set", "it says how to make the handler")
	for says, args := range map[string][]string{
		"one of them": {"write"},
		"/table":      {"write", "--input", "{}"},
		"--target":    {"plain", "--input", "{}"},
		"no handler":  {"single", "--input", "{}"},
		"not JSON":    {"write", "--input", "x"},
		"--key":       {"write", "--input", "{}", "--key", ""},
	} {
		_, e := s.run(exitUsage, "", append([]string{"tasks", "submit"}, args...)...)
		require.Contains(t, e, says, "%v", args)
	}
}
