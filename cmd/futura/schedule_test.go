package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi"
)

func TestSchedulesFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	add := []string{
		"schedule", "add", "nightly", "go:report", "--cron", "30 2 * * *", "--zone", "Europe/Zurich", "--args", "x",
		"--deadline", "2h",
		"--from", "2030-03-30T00:00:00Z", "--except", "12-25",
	}
	require.Equal(t, "nightly fires next 2030-03-30 02:30:00 +01:00", s.ok(add...))
	require.Equal(t, "nightly fires next 2030-03-30 02:30:00 +01:00", s.ok(add...), "again")
	_, e := s.run(exitUsage, "", append(add, "--overlap", "skip")...)
	require.Contains(t, e, "exists already")
	require.Contains(t, e, "--replace")
	s.ok(append(add, "--overlap", "skip", "--replace")...)
	require.Equal(t, "2030-03-30 02:30:00 +01:00\n2030-03-31 03:00:00 +02:00\n2030-04-01 02:30:00 +02:00",
		s.ok("schedule", "next", "nightly", "--count", "3"))
	require.Equal(t, "nightly is paused", s.ok("schedule", "pause", "nightly", "--reason", "because"))
	shown := s.ok("schedule", "show", "nightly")
	require.Regexp(t, `(?m)^when +30 2 \* \* \* Europe/Zurich$`, shown)
	require.Regexp(t, `(?m)^paused +since .*Z because$`, shown)
	require.Regexp(t, `(?m)^overlap +skip$`, shown)
	id := s.ok("schedule", "trigger", "nightly")
	require.Regexp(t, `(?m)^schedule +nightly, for `, s.ok("get", id))
	require.Regexp(t, `(?m)^run .* `+id+` \(triggered\)$`, s.ok("schedule", "show", "nightly"))
	require.Contains(t, s.ok("schedule", "resume", "nightly"), "fires next 2030-03-30")
	s.ok("schedule", "add", "often", "go:report", "--every", "90s")
	list := listed[httpapi.Schedule](t, "schedules", s.ok("schedule", "list", "--json"))
	require.Len(t, list, 2)
	require.EqualValues(t, 90_000, list[1].EveryMS)
	require.Regexp(t, `(?m)^often +go:report +every 1m30s `, s.ok("schedule", "list"))
	require.Equal(t, "removed often", s.ok("schedule", "remove", "often"))
	for says, args := range map[string][]string{
		"crontab line":       {"add", "x", "go:f", "--cron", "* *"},
		"either a crontab":   {"add", "x", "go:f"},
		"time zone":          {"add", "x", "go:f", "--cron", "@daily", "--zone", "Moon"},
		"--from":             {"add", "x", "go:f", "--cron", "@daily", "--from", "tomorrow"},
		"missed times":       {"add", "x", "go:f", "--cron", "@daily", "--missed", "maybe"},
		"overlap":            {"add", "x", "go:f", "--cron", "@daily", "--overlap", "maybe"},
		"schedule \"a b\"":   {"add", "a b", "go:f", "--cron", "@daily"},
		"--count":            {"next", "nightly", "--count", "0"},
		"accepts 2 arg":      {"add", "x"},
		"date \"christmas\"": {"add", "x", "go:f", "--cron", "@daily", "--except", "christmas"},
	} {
		_, e := s.run(exitUsage, "", append([]string{"schedule"}, args...)...)
		require.Contains(t, e, says)
	}
	for _, use := range []string{"show", "next", "pause", "resume", "trigger", "remove"} {
		_, e := s.run(exitNotFound, "", "schedule", use, "none")
		require.Contains(t, e, "none")
	}
	require.Contains(t, s.ok("check"), "0 problems")
}

func TestTimesFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.ok("submit", "go:f", "--at", "2040-12-24T08:00:00+01:00", "--expires", "10m", "--deadline",
		"2041-01-01T00:00:00Z")
	shown := s.ok("get", id)
	require.Regexp(t, `(?m)^state +delayed`, shown)
	require.Regexp(t, `(?m)^expires +2040-12-24.*, if it waits$`, shown)
	require.Regexp(t, `(?m)^deadline +2041-01-01`, shown)
	require.Contains(t, s.ok("explain", id), "by its deadline, 2041-01-01T00:00:00Z")
	soon := s.ok("submit", "go:f", "--deadline", "90m")
	require.Contains(t, s.ok("explain", soon), "by its deadline")
	for says, args := range map[string][]string{
		"--at":             {"--at", "tomorrow"},
		"exclude":          {"--at", "2040-12-24T08:00:00Z", "--delay", "1m"},
		"it has passed":    {"--deadline", "-1m"},
		`--deadline "soon`: {"--deadline", "soon"},
		"negative":         {"--expires", "-1s"},
	} {
		_, e := s.run(exitUsage, "", append([]string{"submit", "go:f"}, args...)...)
		require.Contains(t, e, says)
	}
	require.Contains(t, s.ok("check"), "0 problems")
}
