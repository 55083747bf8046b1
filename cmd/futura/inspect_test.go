package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inspectedLine is what a test reads of a line of futura inspect --json.
type inspectedLine struct {
	Kind, Escaped string
	Parts         map[string]any
	Value         struct {
		Fields map[string]any
	}
}

func (s *shell) inspect(args ...string) []inspectedLine {
	var lines []inspectedLine
	for line := range strings.Lines(s.ok(append([]string{"inspect", "--json"}, args...)...)) {
		var l inspectedLine
		require.NoError(s.t, json.Unmarshal([]byte(line), &l), line)
		lines = append(lines, l)
	}
	return lines
}

func TestInspectFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	id := s.ok("submit", "go:later", "--args", "hello")
	for range 3 {
		s.ok("submit", "go:later", "--args", strings.Repeat("long ", 50))
	}
	out := s.ok("inspect", id)
	require.Contains(t, out, id+" is ready")
	require.Contains(t, out, `"hello" (5 bytes)`)
	lines := s.inspect(id)
	require.Equal(t, "spec", lines[0].Kind)
	require.Equal(t, "go:later", lines[0].Value.Fields["function"])
	require.Equal(t, id, lines[0].Parts["id"])

	require.NotContains(t, s.ok("inspect", "futures"), "…", "what is piped is whole")
	all := s.inspect("ready")
	require.Len(t, all, 4)
	var o string
	var e string
	var paged []inspectedLine
	for after := ""; ; {
		o, e = s.run(exitOK, "", "inspect", "ready", "--json", "--limit", "1", "--after", after)
		var l inspectedLine
		require.NoError(t, json.Unmarshal([]byte(o), &l))
		paged = append(paged, l)
		_, rest, more := strings.Cut(e, "more: --after '")
		if !more {
			break
		}
		after, _, _ = strings.Cut(rest, "'")
	}
	require.Equal(t, all, paged)
	require.Contains(t, s.ok("inspect", "--key", lines[0].Escaped), "go:later")
	require.Equal(t, lines[0].Kind, s.inspect("--prefix", lines[0].Escaped)[0].Kind)

	commands := s.ok("inspect", "--fdbcli", id)
	require.Contains(t, commands, "get "+lines[0].Escaped)
	for line := range strings.Lines(commands) {
		require.Regexp(t, `^get(range(keys)?)? [!-~]+`, line)
	}
}

func TestInspectMistakes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("submit", "go:later")
	for _, args := range [][]string{
		{}, {"ready", "--key", "x"}, {"nothing"}, {"--key", `\x0`}, {"ready", "--limit", "0"}, {"ready", "--limit", "1001"},
		{"--prefix", `\xff`}, {"--fdbcli", "ready"}, {"ready", "futures"}, {"ready", "--after", `\`},
	} {
		s.run(exitUsage, "", append([]string{"inspect"}, args...)...)
	}
	for _, args := range [][]string{{}, {"--key", "x"}} {
		_, said := s.run(exitUsage, "", append([]string{"inspect", "--fdbcli"}, args...)...)
		require.Contains(t, said, "give its id")
	}
	s.run(exitNotFound, "", "inspect", "01995b4e-6f3a-7c1e-9d2b-0123456789ab")
	s.run(exitNotFound, "", "inspect", "--fdbcli", "01995b4e-6f3a-7c1e-9d2b-0123456789ab")
	s.run(exitNotFound, "", "inspect", "--key", "nothing")
	require.Empty(t, s.ok("inspect", "delayed"))
}

func TestNumbersOfInspectionsAreWhole(t *testing.T) {
	t.Parallel()
	require.Equal(t, "18446744073709551615", fieldText("max_attempts", uint64(math.MaxUint64)))
	require.Equal(t, "1970-01-01T00:00:00.007Z", fieldText("at_ms", uint64(7)))
}
