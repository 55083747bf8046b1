package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi"
)

func TestPausesFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.ok("submit", "go:later", "--queue", "mail")
	require.Equal(t, "paused queue mail", s.ok("pause", "queue", "mail", "--reason", "it is down"))
	require.Regexp(t, `^ready \(paused\): Its queue mail has been paused since .* \(it is down\): `+
		`futura resume queue mail ends that.$`, s.ok("explain", id))
	require.Equal(t, "paused function go:later", s.ok("pause", "function", "go:later"))
	require.Regexp(t, `(?m)^queue +mail +\S+ +it is down$`, s.ok("pause"))
	require.Len(t, listed[httpapi.Pause](t, "pauses", s.ok("pause", "--json")), 2)
	require.Equal(t, "resumed queue mail", s.ok("resume", "queue", "mail"))
	require.Equal(t, "not paused: queue mail", s.ok("resume", "queue", "mail"))
	require.Contains(t, s.ok("explain", id), "Its function go:later has been paused")
	s.ok("resume", "function", "go:later")
	require.Contains(t, s.ok("explain", id), "no_worker")
	s.run(exitNotFound, "", "pause", "function", "wasm:none")
	for says, args := range map[string][]string{
		"futura pause queue NAME":  {"pause", "worker", "x"},
		"futura resume queue NAME": {"resume"},
		"needs what to pause":      {"pause", "--reason", "it is down"},
		"use 1 to 64":              {"pause", "queue", "a b"},
		"use go:NAME":              {"resume", "function", "later"},
	} {
		_, e := s.run(exitUsage, "", args...)
		require.Contains(t, e, says, "%v", args)
	}
}
