package bench_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/internal/bench"
)

// TestCostOfLimits counts what a process reads that asks for each of a thousand futures
// whether there is room: without limits one key, with limits the counters once in a
// while, and nothing at the submits and claims themselves.
func TestCostOfLimits(t *testing.T) {
	t.Parallel()
	const n = 1000
	cost := func(limits quota.Limits) (asked, done bench.Usage) {
		g := newGraphCost(t)
		_, err := quota.Of(g.c).Set(g.ctx, func(l *quota.Limits) { *l = limits })
		require.NoError(t, err)
		for range n / fdbmodel.MaxChange {
			before := g.meter.Usage()
			for range fdbmodel.MaxChange {
				require.NoError(t, quota.Of(g.c).Admit(g.ctx, 1))
			}
			_, _, err := quota.Of(g.c).MayClaim(g.ctx, fdbmodel.MaxChange)
			require.NoError(t, err)
			middle := g.meter.Usage()
			g.submit(fdbmodel.MaxChange, func(int) []layout.ID { return nil })
			g.run(fdbmodel.MaxChange)
			asked, done = plus(asked, since(middle, before)), plus(done, since(g.meter.Usage(), middle))
		}
		return asked, done
	}
	plainAsked, plain := cost(quota.Limits{})
	require.Equal(t, bench.Usage{Reads: 1}, plainAsked)
	asked, limited := cost(quota.Limits{Pending: 1e6, Running: 1e6})
	require.Equal(t, plain, limited)
	require.LessOrEqual(t, asked.Reads, int64(2*2), "the limits, and the counters of the shard")
	require.Zero(t, asked.Mutations)
	asked, limited = cost(quota.Limits{PerSecond: 1e6})
	require.Equal(t, plain, limited)
	require.LessOrEqual(t, asked.Mutations, int64(40), "leases")
	require.Less(t, asked.Reads, int64(50))
	require.Positive(t, quota.LimitsEvery/time.Millisecond)
}

func plus(a, b bench.Usage) bench.Usage { return since(a, since(bench.Usage{}, b)) }
