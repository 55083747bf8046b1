package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures/httpapi"
)

// TestUsageOfAWorker has a worker run a module, and reads what it has used once it has left.
func TestUsageOfAWorker(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "echo.wasm")
	require.NoError(t, os.WriteFile(file, echoModule(t), 0o600))
	e, _, stop := startDev(t, "--store", s.store, "--name", "steady")
	s.ok("function", "put", file, "--alias", "echo")
	s.ok("submit", "wasm:echo", "--arg", "hello", "--wait")
	var answer httpapi.UsageView
	require.Eventually(t, func() bool {
		_, text := ask(t, &e, "GET", "/api/v1/usage?by=worker", e.Token, "")
		return json.Unmarshal([]byte(text), &answer) == nil && len(answer.Rows) == 1
	}, time.Minute, 100*time.Millisecond, "a heartbeat tells it")
	require.Zero(t, stop())
	var view httpapi.UsageView
	require.NoError(t, json.Unmarshal([]byte(s.ok("usage", "--by", "worker", "--json")), &view))
	require.Equal(t, answer, view)
	require.Equal(t, "steady", view.Rows[0].Worker)
	require.Equal(t, "worker", view.Rows[0].Kind)
	require.EqualValues(t, 1, view.Total.Items)
	require.EqualValues(t, 5, view.Total.BytesOut)
	require.Positive(t, view.Total.RunMS+view.Total.CPUMS)
	require.Regexp(t, `(?m)^steady +1 +0 .* 5B `, s.ok("usage", "--by", "worker"))
	require.Regexp(t, `(?m)^20\d\d-\d\d-\d\d +1 +0 `, s.ok("usage"))
	require.Regexp(t, `(?m)^total +0 +0 +- +- +- +- +-$`, s.ok("usage", "--from", "2026-01-01", "--to", "2026-01-02"))
	for _, wrong := range [][]string{{"--by", "x"}, {"--from", "x"}, {"--to", "2026-02-30"}, {"--from", "9999-01-01"}} {
		s.run(exitUsage, "", append([]string{"usage"}, wrong...)...)
	}
}

// TestTheTableOfUsageIsNarrow prints the largest figures.
func TestTheTableOfUsageIsNarrow(t *testing.T) {
	t.Parallel()
	big := httpapi.Used{Items: 123_456_789, Failed: 1_234_567, RunMS: 1e12, CPUMS: 1e12, BytesIn: math.MaxInt64,
		BytesOut: math.MaxInt64, MemoryMax: math.MaxInt64}
	rows := usageRows(&httpapi.UsageView{By: "worker", Total: big, Rows: []httpapi.UsageRow{
		{Kind: "worker", Worker: strings.Repeat("n", 200), Used: big}, {Kind: "peer", Worker: strings.Repeat("p", 52)},
	}})
	width := 2 * (len(rows[0]) - 1)
	for i := range rows[0] {
		most := 0
		for _, row := range rows {
			most = max(most, len([]rune(row[i])))
		}
		width += most
	}
	require.LessOrEqual(t, width, 80)
	require.Equal(t, []string{"277777.8h", "8EiB"}, []string{rows[1][3], rows[1][5]})
	require.Equal(t, "peer …ppppppp", rows[2][0])
	require.Equal(t, []string{"999B", "1KiB", "1MiB", "0.5s", "1.5min"},
		[]string{bytesText(999), bytesText(1024), bytesText(1 << 20), span(500), span(90_000)})
}
