package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestCostOfABundle compares what a hundred members of one bundle ask of the store with as
// many plain futures, from submit to end.
func TestCostOfABundle(t *testing.T) {
	t.Parallel()
	const n = 100
	submit := func(g *graphCost, lane layout.Lane) {
		subs := make([]fdbmodel.Submission, n)
		for i := range subs {
			subs[i].Spec = layout.Spec{Function: "go:f", Lane: lane}
		}
		_, err := g.c.Submit(g.ctx, subs)
		require.NoError(t, err)
	}
	plain := newGraphCost(t)
	start := plain.meter.Usage()
	submit(plain, layout.Lane{})
	plain.run(n)
	want := since(plain.meter.Usage(), start)

	g := newGraphCost(t)
	require.NoError(t, lanes.Of(g.c).SetKind(g.ctx, "k", layout.LaneKind{Bundle: "go:f"}))
	start = g.meter.Usage()
	submit(g, layout.Lane{Kind: "k", Key: "a"})
	answer, err := g.worker.Claim(g.ctx, fdbmodel.ClaimRequest{Free: g.worker.Info().Capacity, Max: n})
	require.NoError(t, err)
	require.Len(t, answer.Futures, 1)
	got, err := g.worker.Gather(g.ctx, &answer.Futures[0], n)
	require.NoError(t, err)
	require.Len(t, got.Members, n)
	var done []fdbmodel.Completion
	for i := range got.Members {
		done = append(done, fdbmodel.Completion{Future: &got.Members[i], Result: &layout.Result{}})
	}
	done = append(done, fdbmodel.Completion{Future: &answer.Futures[0], Result: &layout.Result{}})
	_, err = g.worker.Finish(g.ctx, done)
	require.NoError(t, err)
	cost := since(g.meter.Usage(), start)
	t.Logf("plain %+v, in a bundle %+v", want, cost)
	require.LessOrEqual(t, cost.Mutations, want.Mutations*3/2)
	require.LessOrEqual(t, cost.Commits, want.Commits+2)
	require.LessOrEqual(t, want.Reads, int64(10))
	require.LessOrEqual(t, cost.Reads, int64(125), "members are read as they end")
}
