package bench_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/bench"
)

// inLanes submits futures of lanes, in batches of MaxClaim.
func (g *graphCost) inLanes(n int, key func(i int) string) {
	for at := 0; at < n; at += fdbmodel.MaxClaim {
		subs := make([]fdbmodel.Submission, min(n-at, fdbmodel.MaxClaim))
		ids, err := g.c.DrawIDs(len(subs))
		require.NoError(g, err)
		for i := range subs {
			subs[i] = fdbmodel.Submission{ID: ids[i], Drawn: true, Spec: layout.Spec{Function: "go:f"}}
			if key != nil {
				subs[i].Spec.Lane = layout.Lane{Kind: "k", Key: key(at + i)}
			}
		}
		_, err = g.c.Submit(g.ctx, subs)
		require.NoError(g, err)
	}
}

// TestCostOfLanes bounds what members of lanes ask of the store beyond plain futures, from
// the submit to the result.
func TestCostOfLanes(t *testing.T) {
	t.Parallel()
	const n = fdbmodel.MaxClaim
	cost := func(width int, key func(i int) string) bench.Usage {
		g := newGraphCost(t)
		if key != nil {
			require.NoError(t, lanes.Of(g.c).SetKind(g.ctx, "k", layout.LaneKind{Width: width}))
		}
		start := g.meter.Usage()
		g.inLanes(n, key)
		g.run(n)
		return since(g.meter.Usage(), start)
	}
	plain := cost(0, nil)
	for name, c := range map[string]struct {
		width            int
		key              func(int) string
		mutations, reads int64
	}{
		"never full":      {10, func(i int) string { return fmt.Sprint(i) }, 2 * n, 2*n + 4},
		"one of width 16": {16, func(int) string { return "one" }, 4 * n, n},
		"16 of width 4":   {4, func(i int) string { return fmt.Sprint(i % 16) }, 4 * n, 2 * n},
	} {
		more := since(cost(c.width, c.key), plain)
		t.Logf("%s: beyond plain futures %+v, which take %+v", name, more, plain)
		require.LessOrEqual(t, more.Mutations, c.mutations, name)
		require.LessOrEqual(t, more.Reads, c.reads, name)
	}
}

// TestManyLanes has a million lanes with one future each, and less in a short test: nothing
// remains of them.
func TestManyLanes(t *testing.T) {
	n := 20_000
	if os.Getenv("FUTURA_LONG") != "" {
		n = 1_000_000
	}
	g := newGraphCost(t)
	require.NoError(t, lanes.Of(g.c).SetKind(g.ctx, "k", layout.LaneKind{}))
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	empty, start := heap(), time.Now()
	g.inLanes(n, func(i int) string { return fmt.Sprint(i) })
	submitted, full := time.Since(start), heap()
	start = time.Now()
	g.run(n)
	ran := time.Since(start)
	t.Logf("%d lanes: submitted at %.0f per second, run at %.0f; %.0f bytes of memory each", n,
		float64(n)/submitted.Seconds(), float64(n)/ran.Seconds(), (full-empty)/float64(n))
	all, err := lanes.Of(g.c).List(g.ctx, "k", "", 1)
	require.NoError(t, err)
	require.Empty(t, all)
	require.NoError(t, g.c.View(g.ctx, func(tx kv.Attempt) error {
		for shard := range g.c.Config().Shards {
			for _, sub := range []string{layout.SubLanes, layout.SubLine, layout.SubLanesDue} {
				page, err := tx.GetRange(kv.Prefix(g.c.Keys().Shard(shard, sub)), kv.RangeOptions{Limit: 1}).Wait(g.ctx)
				require.NoError(t, err)
				require.Empty(t, page.Items, sub)
			}
		}
		return nil
	}))
	if n <= 20_000 {
		report, err := audit.Check(g.ctx, g.c, audit.Options{})
		require.NoError(t, err)
		require.Empty(t, report.Problems)
	}
}
