package page_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/bench"
	"github.com/futura-run/futura/internal/bench/page"
)

var update = flag.Bool("update", false, "write the page from its JSON")

const reference = "../../../docs/reference"

// TestDocsOfPerformance compares the page and its plots with what their JSON gives.
func TestDocsOfPerformance(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(reference, "performance.json"))
	require.NoError(t, err)
	d, err := page.Read(bytes.NewReader(text))
	require.NoError(t, err)
	files, err := d.Files()
	require.NoError(t, err)
	require.Len(t, files, 6)
	for _, f := range files {
		path := filepath.Join(reference, f.Name)
		if *update {
			require.NoError(t, os.WriteFile(path, f.Content, 0o644))
		}
		found, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(f.Content), string(found), "%s is written by make bench: run make generate, or measure", path)
	}
}

// TestPageOfAPart writes the page of few measurements: the others are left open, and no plot fails.
func TestPageOfAPart(t *testing.T) {
	t.Parallel()
	conflicts := 0.015
	report := bench.Report{Scenario: "latency", Store: page.Remote, Futures: 1000, P50: 1.234,
		ConflictsPerCommit: &conflicts, TransactionsPerFuture: 3.1,
		PerFuture: &bench.Cost{UserMicroseconds: 120, AllocatedBytes: 12345}}
	var d page.Document
	content := func() map[string]string {
		files, err := d.Files()
		require.NoError(t, err)
		all := map[string]string{}
		for _, f := range files {
			all[f.Name] = string(f.Content)
		}
		return all
	}
	require.Contains(t, content()["performance.md"], "| FoundationDB | – |")
	d.Put(report)
	report.P50 = 2.345
	d.Put(report)
	worse := report
	worse.P50 = 3
	d.PutBetter(worse)
	d.Put(bench.Report{Scenario: "load", Store: page.InProcess, Points: []bench.Point{
		{At: 1000, FuturesPerSecond: 999, P50: 1, P99: 2}, {At: 5000, FuturesPerSecond: 4321.5, P50: 3, P99: 40}}})
	d.Put(bench.Report{Scenario: "pending", Store: page.InProcess, Points: []bench.Point{{At: 1000, FuturesPerSecond: 0}}})
	all := content()
	require.Contains(t, all["performance.md"], "| submit to result | p50 | – | 2.35 | – |",
		"a report replaces an earlier one, and not a better one")
	require.Contains(t, all["performance.md"], "| remote | 3.1 | 0 | 0 | 1.5 % | 120 + 0 µs | 12,300 |")
	require.Contains(t, all["performance.md"], "| in process | 5,000 | 4,320 | 3 | 40 |")
	require.Contains(t, all["performance-load.svg"], ">in process</text>")
	require.NotContains(t, all["performance-workers.svg"], ">in process</text>")
	require.Equal(t, all, content(), "equal documents have equal files")
	for name, text := range all {
		if strings.HasSuffix(name, ".svg") {
			require.Contains(t, text, "fill:#FFFFFF", "%s can be read on a dark page", name)
		}
	}
	d.Machine.Commit, d.Machine.Day = "1234567", "2026-01-02"
	d.Put(bench.Report{Scenario: "load", Store: page.FoundationDB})
	require.Contains(t, content()["performance.md"],
		"| Futura | ,  (remote, in process); 1234567, 2026-01-02 (FoundationDB) |",
		"what was measured of another version is named")
	_, err := page.Read(strings.NewReader(`{"reports": [{"nothing": 1}]}`))
	require.ErrorContains(t, err, "nothing")
}
