package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi"
)

// TestActivityOfAWorker has a worker run a module, and reads what happened once it has left.
func TestActivityOfAWorker(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "echo.wasm")
	require.NoError(t, os.WriteFile(file, echoModule(t), 0o600))
	e, _, stop := startDev(t, "--store", s.store)
	s.ok("function", "put", file, "--alias", "echo")
	s.ok("submit", "wasm:echo", "--arg", "hello", "--wait")
	var answer, view httpapi.ActivityView
	require.Eventually(t, func() bool {
		_, text := ask(t, &e, "GET", "/api/v1/activity", e.Token, "")
		return json.Unmarshal([]byte(text), &answer) == nil && len(answer.Functions) == 1
	}, time.Minute, 100*time.Millisecond, "a heartbeat tells it")
	require.Zero(t, stop())
	require.NoError(t, json.Unmarshal([]byte(s.ok("activity", "--json")), &view))
	require.Equal(t, answer.Functions, view.Functions)
	require.EqualValues(t, 1, view.Functions[0].Succeeded)
	require.Positive(t, view.Functions[0].RunP50MS)
	require.Positive(t, view.Functions[0].WaitP50MS)
	require.Regexp(t, `(?m)^echo \(wasm:\S+\) +default +1 +0 +0 `, s.ok("activity"))
	require.Regexp(t, `(?m)^20\d\d-\d\d-\d\d \d\d:00Z +1 +0 +0 `, s.ok("activity", "--last", "7d"))
	for _, wrong := range [][]string{{"--last", "3h"}, {"--by", "day"}, {"--last", "24h", "--by", "minute"}} {
		s.run(exitUsage, "", append([]string{"activity"}, wrong...)...)
	}
	_, said := s.run(exitUsage, "", "activity", "--last", "7d", "--by", "minute")
	require.Contains(t, said, "use --by hour, or --last 1h or 2h")
}

func TestTimesOfActivityAreShort(t *testing.T) {
	t.Parallel()
	for ms, want := range map[float64]string{
		0: "-", 0.5: "0.5ms", 999: "999ms", 59_900: "60s", 8e6: "133min", 1e8: "27.8h",
	} {
		require.Equal(t, want, shortTime(ms))
	}
}
