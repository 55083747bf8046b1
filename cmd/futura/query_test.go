package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLastLine(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string]string{
		"": "", " \n\n": "", "one": "one", "one\ntwo\n\n": "two", "a\x1b[31mred\tb\n": "a [31mred b", "\xff\n": "�",
		strings.Repeat("é", 100): strings.Repeat("é", 80) + "…",
	} {
		require.Equal(t, want, lastLine([]byte(stream)))
	}
}

// TestTerminalsAreNotCommanded stores what a terminal would obey, and prints it.
func TestTerminalsAreNotCommanded(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	const hostile = "\x1b]0;title\a\x1b[2J\u202e\u009b31m"
	id := strings.TrimSpace(s.ok("submit", "go:none", "--env", "A="+hostile))
	s.ok("cancel", id, "--reason", hostile+"shown")
	for _, command := range []string{"get", "explain", "inspect"} {
		text := s.ok(command, id)
		require.Contains(t, text, "shown", command)
		require.NotRegexp(t, "[\x00-\x09\x0b-\x1f\x7f-\u009f\u202e]", text, command)
	}
	_, text := s.run(exitUsage, "", "submit", hostile)
	require.NotRegexp(t, "[\x00-\x09\x0b-\x1f\x7f-\u009f\u202e]", text)
}

func TestNamesAreCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	require.Equal(t, "go:"+strings.Repeat("é", 9)+"…"+strings.Repeat("é", 10),
		functionText("go:"+strings.Repeat("é", 30), nil))
	require.Equal(t, "go:"+strings.Repeat("é", 20), functionText("go:"+strings.Repeat("é", 20), nil))
}
