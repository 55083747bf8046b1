package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/console"
)

func TestListAndGetSayWhatPeopleLookFor(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "copy.wasm")
	require.NoError(t, os.WriteFile(file, copying(), 0o600))
	function := s.ok("function", "put", file, "--alias", "copy")
	first := s.ok("submit", "wasm:copy", "--args", "some\ninput", "--queue", "default", "--priority", "7")
	last := s.ok("submit", "go:nobody", "--queue", "urgent", "--timeout", "3s")
	out, e := s.run(exitOK, "", "list", "--limit", "2")
	require.Empty(t, e, "there is no other page")
	lines := strings.Split(out, "\n")
	require.Regexp(t, `^ID +STATE +FUNCTION +TRY +SUBMITTED +QUEUE$`, lines[0])
	require.Regexp(t, `^`+last+` +ready +go:nobody +0 +20\S+Z +urgent$`, lines[1])
	require.Regexp(t, `^`+first+` +ready +copy \(`+function[:12]+`….{10}\) +0 +20\S+Z +default$`, lines[2])
	require.Contains(t, strings.Split(s.ok("list", "--oldest"), "\n")[1], first)
	_, e = s.run(exitOK, "", "list", "--limit", "1")
	require.Contains(t, e, "more: --cursor ")
	next := strings.TrimSpace(strings.TrimPrefix(e, "more: --cursor "))
	out, e = s.run(exitOK, "", "list", "--limit", "1", "--cursor", next)
	require.Contains(t, out, first)
	require.Empty(t, e)

	require.Equal(t, "some\ninput", s.ok("await", first))
	out = s.ok("get", first)
	for _, line := range []string{
		`state +realized`, `alias +copy, at present`, `submitted +20\S+Z`, `arguments +10 bytes: some input`, `priority +7`,
		`result +10 bytes: some input`, `ended +20\S+Z, ran .*s`,
	} {
		require.Regexp(t, `(?m)^`+line+`$`, out)
	}
	s.ok("cancel", last, "--reason", "not wanted")
	out = s.ok("get", last)
	require.Regexp(t, `(?m)^state +failed \(cancelled\)$`, out)
	require.Regexp(t, `(?m)^timeout +3s$`, out)
	require.Regexp(t, `(?m)^last failure +at 20\S+Z, cancelled: not wanted$`, out)
	require.NotContains(t, out, "attempt", "there was none")
}

// TestListsOfFailuresSayWhy: where lines are piped, kind and error stand behind the rest; a terminal
// shows them in place of what all have in common.
func TestListsOfFailuresSayWhy(t *testing.T) {
	t.Parallel()
	id := layout.ID{15: 1}
	failed := layout.Row{ID: id, Spec: &layout.Spec{Function: "go:f", Queue: "q"},
		Exception: &layout.Exception{Kind: layout.KindExit, Message: "exit status 1\nmore", Final: true, At: 1}}
	ready := layout.Row{ID: id, Spec: &layout.Spec{Function: "go:f", Queue: "q"}}
	lines := listLines([]layout.Row{failed, ready}, nil, console.Unbounded)
	require.Equal(t, []string{"KIND", "ERROR"}, lines[0][6:])
	require.Equal(t, []string{"exit", "exit status 1"}, lines[1][6:])
	require.Equal(t, []string{"", ""}, lines[2][6:])
	require.Len(t, listLines([]layout.Row{ready}, nil, console.Unbounded)[0], 6)
	require.Equal(t, [][]string{{"ID", "FUNCTION", "KIND", "ERROR"}, {id.String(), "go:f", "exit", "exit status 1"}},
		listLines([]layout.Row{failed}, nil, 80))
}

// TestGetNamesDeaths says which workers died with a future, and which of these deaths count.
func TestGetNamesDeaths(t *testing.T) {
	t.Parallel()
	deaths := layout.Deaths{{Worker: "a"}, {Worker: "b", Crash: true}}
	require.Equal(t, "worker a, worker b (counts as a crash) died with it", deathsLine(deaths))
	row := layout.Row{Spec: &layout.Spec{Function: "go:f", SubmittedAt: 1}}
	row.Attempts.Deaths = deaths
	d := description{row: &row, ending: &layout.Ending{}}
	require.Contains(t, d.rows(), []string{"deaths", deathsLine(deaths)})
	require.Equal(t, "-", timeText(0))
}

func TestRepeatedSubmitSaysThatItsFutureExisted(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	first := s.ok("submit", "go:nobody", "--key", "k", "--priority", "1")
	again, e := s.run(exitOK, "", "submit", "go:nobody", "--key", "k", "--priority", "9")
	require.Equal(t, first, strings.TrimSpace(again))
	require.Contains(t, e, "is this one; as in its first submit, and not as in this one: priority\n")
	require.Regexp(t, `(?m)^priority +1$`, s.ok("get", first))
	_, e = s.run(exitUsage, "", "submit", "go:nobody", "--key", "k", "--queue", "q")
	require.Contains(t, e, "with other queue")
}

func TestListByTagAndTime(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	tagged := s.ok("submit", "go:nobody", "--tag", "customer:acme", "--tag", "nightly", "--key", "k")
	other := s.ok("submit", "go:nobody", "--tag", "nightly", "--label", "order 7")
	require.Regexp(t, `(?m)^tags +customer:acme, nightly$`, s.ok("get", tagged))
	ids := func(args ...string) (ids []string) {
		for _, line := range strings.Split(s.ok(append([]string{"list"}, args...)...), "\n")[1:] {
			ids = append(ids, strings.Fields(line)[0])
		}
		return ids
	}
	require.Equal(t, []string{tagged}, ids("--tag", "customer:acme"))
	require.Equal(t, []string{other, tagged}, ids("--tag", "nightly", "--since", "1h"))
	require.Equal(t, []string{other, tagged}, ids("--since", "1h", "--queue", "default"))
	require.Equal(t, []string{other}, ids("--label", "order 7"))
	_, e := s.run(exitUsage, "", "submit", "go:nobody", "--label", "a\x1bb")
	require.Contains(t, e, "printable characters")
	require.Empty(t, ids("--until", "1h"))
	s.ok("lane", "set", "mail", "--width", "1")
	laned := s.ok("submit", "go:nobody", "--lane", "mail/a/b", "--tag", "nightly")
	require.Equal(t, []string{laned}, ids("--lane", "mail/a/b"))
	require.Empty(t, ids("--lane", "mail/a"))
	require.Empty(t, ids("--worker", "0123456789abcdef"))
	require.Regexp(t, `^TAG +FUTURES +BYTES +OLDEST +NEWEST *\nnightly +3 .*\ncustomer:acme +1 `,
		s.ok("list", "--count-by", "tag"))
	require.Regexp(t, `^LANE .*\n\(none\) +2 .*\nmail/a/b +1 `, s.ok("list", "--count-by", "lane", "--state", "ready"))
	var by httpapi.Breakdown
	require.NoError(t, json.Unmarshal([]byte(s.ok("list", "--count-by", "lane", "--json")), &by))
	require.True(t, by.Complete)
	s.ok("cancel", "--tag", "customer:acme", "--since", "1h")
	s.ok("cancel", "--lane", "mail/a/b")
	require.Equal(t, []string{laned, tagged}, ids("--state", "failed"))
	require.Equal(t, []string{other}, ids("--state", "ready"))
	for _, args := range [][]string{
		{"list", "--tag", "a b"}, {"list", "--since", "yesterday"}, {"list", "--until=-1h"},
		{"submit", "go:nobody", "--tag", ""}, {"list", "--lane", "mail"}, {"list", "--count-by", "colour"},
		{"cancel", "--state", "failed"}, {"retry", "--lane", "mail/a"}, {"delete", "--since", "yesterday"},
	} {
		_, e := s.run(exitUsage, "", args...)
		require.NotEmpty(t, e)
	}
}
