package console

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// TestTablesFitATerminal has lists of each width, and cells of each length, shown in terminals of several widths.
func TestTablesFitATerminal(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	id := "01995b4e-6f3a-7c1e-9d2b-0123456789ab"
	for columns := 3; columns <= 12; columns++ {
		for _, cell := range []string{
			"", "x", "default", id, now.Add(-time.Hour).Format(time.RFC3339), strings.Repeat("é", 300),
		} {
			rows := [][]string{make([]string, columns), make([]string, columns), {"more: --after " + id}}
			for i := range columns {
				rows[0][i], rows[1][i] = "HEADING", cell
			}
			rows[1][0] = id
			for _, width := range []int{40, 80, 120} {
				var out bytes.Buffer
				require.NoError(t, Aligned(&out, fit(rows, width, now)))
				for line := range strings.Lines(out.String()) {
					if strings.HasPrefix(line, "more: ") {
						continue
					}
					require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), width, line)
				}
				require.Contains(t, out.String(), id, "the first column is whole")
				require.Contains(t, out.String(), "more: --after "+id)
			}
			require.Equal(t, cell, rows[1][1], "the rows of the caller stay")
			require.Equal(t, rows, fit(rows, Unbounded, now), "what is piped is whole")
		}
	}
	named := Lines([][]string{{"LANE", "FUTURES", "BYTES"}, {strings.Repeat("k", 300), "17", "4"}}, 80)
	require.Equal(t, "LANE"+strings.Repeat(" ", 38)+"FUTURES  BYTES\n"+strings.Repeat("k", 39)+"…  17       4\n", named)
	pairs := [][]string{{"state", "failed"}, {"error", strings.Repeat("long ", 100)}}
	require.Equal(t, pairs, fit(pairs, 80, now), "names and values stay")
}

func TestBriefTimes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for cell, want := range map[string]string{
		"2026-05-01T03:04:05Z": "03:04:05Z", "2026-04-09T03:04:05Z": "Apr  9 03:04Z", "2025-12-31T23:59:59Z": "2025-12-31",
		"default": "default", "": "",
	} {
		require.Equal(t, want, briefTime(cell, now))
	}
}

// TestATableKeepsLinesInTheirColumn has names with ends of lines.
func TestATableKeepsLinesInTheirColumn(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, Aligned(&out, [][]string{{"id", "1"}, {"lane", "k/a\nstate  realized\x1b[1m"}, {"queue", "q"}}))
	require.Equal(t, "id     1\nlane   k/a\n       state  realized [1m\nqueue  q\n", out.String())
	out.Reset()
	require.NoError(t, Aligned(&out, [][]string{{"LANE", "FUTURES"}, {"k/a\nk/b  900", "1"}, {"more:\nnone"}}))
	require.Equal(t, "LANE          FUTURES\nk/a k/b  900  1\nmore:\nnone\n", out.String())
}
