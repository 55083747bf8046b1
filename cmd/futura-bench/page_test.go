package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/bench"
	"github.com/futura-run/futura/internal/bench/page"
)

func TestMain(m *testing.M) {
	bench.ChildMain()
	os.Exit(m.Run())
}

// TestPageIsMeasuredInParts measures one scenario on two stores, and then another: the first stays.
func TestPageIsMeasuredInParts(t *testing.T) {
	t.Chdir(t.TempDir())
	measured(t, exitOK, "page", "--quick", "--dir", ".", "--only", "latency/embedded,latency/remote")
	measured(t, exitOK, "page", "--quick", "--dir", ".", "--only", "burndown/embedded", "--shared")
	d, err := earlier("performance.json")
	require.NoError(t, err)
	var found []string
	for _, r := range d.Reports {
		require.Positive(t, r.TransactionsPerFuture)
		found = append(found, r.Scenario+"/"+r.Store)
	}
	require.Equal(t, []string{"burndown/embedded", "latency/embedded", "latency/remote"}, found)
	require.True(t, d.Machine.Shared)
	require.NotEmpty(t, d.Machine.CPU)
	files, err := d.Files()
	require.NoError(t, err)
	for _, f := range files {
		content, err := os.ReadFile(f.Name)
		require.NoError(t, err)
		require.Equal(t, string(f.Content), string(content))
	}
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, left, len(files), "the temporary stores are removed")
}

// TestPlanNamesWhatThereIs finds a scenario that the page would never have.
func TestPlanNamesWhatThereIs(t *testing.T) {
	t.Parallel()
	missing := map[string]bool{"backlog": true} // pending has it
	for _, scenario := range bench.Scenarios() {
		missing[scenario] = !missing[scenario]
	}
	for _, p := range plan() {
		require.Contains(t, bench.Scenarios(), p.scenario)
		require.Contains(t, page.Kinds(), p.kind)
		missing[p.scenario] = false
	}
	for scenario, is := range missing {
		require.False(t, is, scenario)
	}
}
