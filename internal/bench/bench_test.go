package bench_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/internal/bench"
)

func TestMain(m *testing.M) {
	bench.ChildMain()
	goleak.VerifyTestMain(m)
}

func TestEveryScenarioEndsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, scenario := range bench.Scenarios() {
		if scenario == "wasm" || scenario == "objects" {
			// They use no store; wasmbench has its tests, and objects have one here.
			continue
		}
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			db, err := embedded.Open(context.Background(), dir, embedded.Options{})
			require.NoError(t, err)
			defer db.Close()
			progress := new(bench.Progress)
			o := bench.Options{
				Store: "here", Dir: dir, Futures: 300, Period: 100 * time.Millisecond, Progress: progress,
			}
			if scenario == "idle" {
				o.Workers, o.Period = 5, time.Second
			}
			report, err := bench.Run(context.Background(), db, scenario, o)
			require.NoError(t, err)
			require.Equal(t, scenario, report.Scenario)
			require.Positive(t, report.FsyncP50)
			require.Positive(t, report.StoreSyncP50)
			if scenario == "peers" {
				require.NotEmpty(t, report.B7SSkipped)
			}
			if scenario == "idle" {
				require.Equal(t, 5, report.Watches)
				require.Positive(t, report.PerSecond.Allocations)
			} else {
				require.Equal(t, 300, report.Futures)
				if curves := map[string]int{"load": 5, "workers": 5, "pending": 1, "history": 20}; curves[scenario] > 0 {
					require.Len(t, report.Points, curves[scenario])
					require.Positive(t, report.Points[0].FuturesPerSecond)
				}
				if scenario == "pressure" {
					require.Len(t, report.Pressures, 6)
				}
				if scenario != "lanes" && scenario != "processes" { // which have tables of their own
					require.Positive(t, report.MutationsPerFuture)
					require.Positive(t, report.PerFuture.Allocations)
					require.Positive(t, report.PerFuture.AllocatedBytes)
				}
			}
			phase, done, all := progress.Now()
			require.NotEmpty(t, phase)
			require.Equal(t, all, done, "all that the last phase %q counts is done", phase)

			tx := db.Begin(kv.Options{})
			defer tx.Cancel()
			page, err := tx.GetRange(kv.Range{End: []byte{0xff}}, kv.RangeOptions{Limit: 1}).Wait(context.Background())
			require.NoError(t, err)
			require.Empty(t, page.Items)
		})
	}
}

// TestFewFutures compares with one future alone: each side has one.
func TestFewFutures(t *testing.T) {
	t.Parallel()
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()
	report, err := bench.Run(context.Background(), db, "hints", bench.Options{Futures: 1})
	require.NoError(t, err)
	require.Equal(t, 2, report.Futures)
	require.Positive(t, report.Hints.Without.P50)
}

// TestABacklogCostsNothing has many futures pending of which few run: what it took to fill the cluster is not theirs.
func TestABacklogCostsNothing(t *testing.T) {
	t.Parallel()
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()
	o := bench.Options{Futures: 100_000, Period: time.Millisecond}
	report, err := bench.Run(context.Background(), db, "pending", o)
	require.NoError(t, err)
	require.Len(t, report.Points, 3)
	require.Less(t, report.MutationsPerFuture, 700.0)
}

func TestObjects(t *testing.T) {
	t.Parallel()
	db := embedded.OpenMemory(embedded.Options{})
	defer db.Close()
	report, err := bench.Run(context.Background(), db, "objects", bench.Options{Futures: 2})
	require.NoError(t, err)
	o := report.Objects
	require.Positive(t, o.Copy)
	require.Positive(t, o.Socket)
	for _, times := range []bench.ObjectTimes{
		o.Put, o.Within, o.Between, o.OverSocket, o.PutBetween, o.PutOverSocket,
	} {
		require.Positive(t, times.Small)
		require.Positive(t, times.Large)
		require.Positive(t, times.Ratio)
	}
}

func TestUnknownScenario(t *testing.T) {
	t.Parallel()
	_, err := bench.Run(context.Background(), embedded.OpenMemory(embedded.Options{}), "nonsense", bench.Options{})
	require.ErrorContains(t, err, "nonsense")
}
