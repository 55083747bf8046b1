package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi"
)

func TestLanesFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	_, e := s.run(exitNotFound, "", "submit", "go:send", "--lane", "mail/acme")
	require.Contains(t, e, "futura lane set mail --width 1")
	require.Equal(t, "mail: width 2, 10 in 1s, retries step aside",
		s.ok("lane", "set", "mail", "--width", "2", "--rate", "10/s", "--aside"))
	require.Equal(t, "mail: width 1, 10 in 1s, retries step aside", s.ok("lane", "set", "mail", "--width", "1"),
		"what is not named stays")
	require.Equal(t, "mail: width 1", s.ok("lane", "set", "mail", "--rate", "0", "--aside=false"))
	first := s.ok("submit", "go:send", "--lane", "mail/acme/eu")
	second := s.ok("submit", "go:send", "--lane", "mail/acme/eu")
	require.Contains(t, s.ok("explain", second), "in_line): It is first in line of lane mail/acme/eu, of width 1")
	require.Regexp(t, `(?m)^lane +mail/acme/eu, in line$`, s.ok("get", second))
	require.Regexp(t, `(?m)^lane +mail/acme/eu$`, s.ok("get", first))
	inspected := s.ok("inspect", second)
	for _, kind := range []string{"in line", "lane kind", "lane"} {
		require.Contains(t, inspected, kind)
	}
	require.Regexp(t, `(?m)^in line 1 +`+second+`$`, s.ok("lane", "show", "mail", "acme/eu"))
	require.Regexp(t, `(?m)^lane +acme/eu: 1 admitted, others in line$`, s.ok("lane", "show", "mail"))
	s.ok("submit", "go:send", "--lane", "mail/none")
	s.ok("cancel", s.ok("submit", "go:send", "--lane", "mail/none"))
	require.Regexp(t, `(?m)^lane +none: 1 admitted$`, s.ok("lane", "show", "mail"), "the one in line was cancelled")
	require.Regexp(t, `(?m)^state +1 admitted$`, s.ok("lane", "show", "mail", "none"))
	s.ok("cancel", "--lane", "mail/none")
	require.Equal(t, "mail: width 1, at most 1 in line", s.ok("lane", "set", "mail", "--max-waiting", "1"))
	_, e = s.run(exitStore, "", "submit", "go:send", "--lane", "mail/acme/eu")
	require.Contains(t, e, "--max-waiting")
	require.Regexp(t, `(?m)^state +1 admitted, 1 of at most 1 in line$`, s.ok("lane", "show", "mail", "acme/eu"))
	require.Equal(t, "mail: width 1", s.ok("lane", "set", "mail", "--max-waiting", "0"))
	require.Equal(t, "paused mail/acme/eu", s.ok("lane", "pause", "mail", "acme/eu"))
	require.Contains(t, s.ok("explain", second), `futura lane resume mail "acme/eu" ends that`)
	require.Equal(t, "paused mail", s.ok("lane", "pause", "mail"))
	require.Equal(t, "mail: width 3, paused", s.ok("lane", "set", "mail", "--width", "3"))
	var kind struct {
		httpapi.LaneKind
		Lanes []httpapi.LaneView
	}
	require.NoError(t, json.Unmarshal([]byte(s.ok("lane", "show", "mail", "--json")), &kind))
	require.True(t, kind.Paused)
	require.True(t, kind.Lanes[0].Paused)
	require.Equal(t, "resumed mail", s.ok("lane", "resume", "mail"))
	require.Equal(t, "resumed mail/acme/eu", s.ok("lane", "resume", "mail", "acme/eu"))
	require.Contains(t, s.ok("explain", second), "no_worker")
	list := listed[httpapi.LaneKind](t, "kinds", s.ok("lane", "list", "--json"))
	require.Equal(t, []httpapi.LaneKind{{Name: "mail", Width: 3}}, list)
	_, e = s.run(exitUsage, "", "lane", "remove", "mail")
	require.Contains(t, e, "in use")
	s.ok("cancel", first, second)
	require.Equal(t, "removed mail", s.ok("lane", "remove", "mail"))
	s.run(exitNotFound, "", "lane", "show", "mail")
	for says, args := range map[string][]string{
		"KIND/KEY":    {"submit", "go:f", "--lane", "mail"},
		"10/s":        {"lane", "set", "mail", "--rate", "10"},
		"futura lane": {"lane", "set", "mail", "--width", "0"},
		"up to 744h":  {"lane", "set", "mail", "--rate", "1/1000h"},
		"use 1 to 64": {"lane", "set", "m/x"},
		"--limit":     {"lane", "show", "mail", "--limit", "0"},
		"accepts":     {"lane", "pause"},
	} {
		_, e := s.run(exitUsage, "", args...)
		require.Contains(t, e, says, "%v", args)
	}
}

// TestALongListOfLanes says that there are more.
func TestALongListOfLanes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("lane", "set", "mail")
	for _, key := range []string{"a", "b"} {
		s.ok("submit", "go:f", "--lane", "mail/"+key)
	}
	require.NotContains(t, s.ok("lane", "show", "mail", "--limit", "2"), "others")
	require.Contains(t, s.ok("lane", "show", "mail", "--limit", "1"), "and others")
	require.Contains(t, s.ok("lane", "show", "mail", "--limit", "1", "--json"), `"more": true`)
	_, e := s.run(exitUsage, "", "list", "--count-by", "lane", "--limit", "3")
	require.Contains(t, e, "--count-by and --limit")
}

// TestBundlesFromTheCommandLine changes one setting of bundles after the other.
func TestBundlesFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	require.Equal(t, "write: width 1, go:write runs up to 100 together, of 1000000 bytes",
		s.ok("lane", "set", "write", "--bundle", "go:write"))
	require.Equal(t, "write: width 2, go:write runs up to 50 together, of 1000000 bytes",
		s.ok("lane", "set", "write", "--width", "2", "--most", "50"))
	require.Equal(t, "write: width 2, go:write runs up to 50 together, of 2000 bytes, which waits 100ms for more",
		s.ok("lane", "set", "write", "--linger", "100ms", "--bytes", "2000"))
	list := listed[httpapi.LaneKind](t, "kinds", s.ok("lane", "list", "--json"))
	require.Equal(t, []httpapi.LaneKind{{Name: "write", Width: 2, Bundle: "go:write", Most: 50, Bytes: 2000,
		LingerMS: 100}}, list)
	require.Equal(t, "write: width 2", s.ok("lane", "set", "write", "--bundle", ""))
	for says, args := range map[string][]string{
		"without a function": {"--most", "3"},
		"step aside anyway":  {"--bundle", "go:write", "--aside"},
		"101":                {"--bundle", "go:write", "--most", "101"},
		"1h0m0s":             {"--bundle", "go:write", "--linger", "1h"},
	} {
		_, e := s.run(exitUsage, "", append([]string{"lane", "set", "write"}, args...)...)
		require.Contains(t, e, says, "%v", args)
	}
}

// TestSchedulesSubmitToLanes has a schedule put its futures in a lane.
func TestSchedulesSubmitToLanes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("lane", "set", "nightly")
	s.ok("schedule", "add", "report", "go:report", "--cron", "@daily", "--lane", "nightly/all")
	s.ok("schedule", "trigger", "report")
	id := s.ok("schedule", "trigger", "report")
	require.Contains(t, s.ok("explain", id), "first in line of lane nightly/all")
}
