package sim

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

var seed = flag.Uint64("seed", 0, "run this seed alone, and say what happens")

func TestSim(t *testing.T) {
	if *seed != 0 {
		report, err := Run(context.Background(), Options{Seed: *seed, Log: t.Logf})
		t.Logf("%+v", report)
		require.NoError(t, err)
		return
	}
	first, seeds := uint64(1), uint64(40)
	if testing.Short() {
		seeds = 20
	}
	if os.Getenv("FUTURA_LONG") == "1" {
		first, seeds = uint64(rand.Uint32()), 2000
		t.Logf("seeds from %d to %d", first, first+seeds-1)
	}
	var timedOut, cancelled, lost, charged, infeasible, awaited atomic.Int64
	t.Cleanup(func() {
		require.Positive(t, timedOut.Load())
		require.Positive(t, cancelled.Load())
		require.Positive(t, lost.Load())
		require.Positive(t, infeasible.Load())
		require.Positive(t, awaited.Load())
		require.Greater(t, charged.Load(), lost.Load())
	})
	for n := range seeds {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			report, err := Run(context.Background(), Options{Seed: first + n})
			require.NoErrorf(t, err, "go test ./internal/sim -run TestSim -seed=%d -v", first+n)
			require.Positive(t, report.Realized)
			timedOut.Add(int64(report.TimedOut))
			cancelled.Add(int64(report.Cancelled))
			lost.Add(int64(report.Lost))
			charged.Add(int64(report.Charged))
			infeasible.Add(int64(report.Infeasible))
			awaited.Add(int64(report.Awaited))
		})
	}
}

func TestSeedRepeats(t *testing.T) {
	t.Parallel()
	a, err := Run(context.Background(), Options{Seed: 7})
	require.NoError(t, err)
	b, err := Run(context.Background(), Options{Seed: 7})
	require.NoError(t, err)
	require.Equal(t, a, b)
}
