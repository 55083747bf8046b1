package bench_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/bench"
	"github.com/futura-run/futura/internal/clock"
)

// graphCost runs graphs on a store that counts.
type graphCost struct {
	*testing.T
	ctx    context.Context
	meter  *bench.Meter
	c      *fdbmodel.Cluster
	worker *fdbmodel.Registration
}

func newGraphCost(t *testing.T) *graphCost {
	g := &graphCost{T: t, ctx: context.Background(), meter: bench.NewMeter(embedded.OpenMemory(embedded.Options{}))}
	var err error
	g.c, err = fdbmodel.Open(g.ctx, g.meter, "cost", fdbmodel.Options{Config: layout.Config{Shards: 1},
		Clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000))})
	require.NoError(t, err)
	g.worker, err = g.c.Register(g.ctx, layout.WorkerInfo{Functions: []string{"go:f"},
		Capacity: layout.Resources{Slots: fdbmodel.MaxClaim}})
	require.NoError(t, err)
	return g
}

// submit submits n futures, the inputs of which a function gives.
func (g *graphCost) submit(n int, inputs func(i int) []layout.ID) []layout.ID {
	ids, err := g.c.DrawIDs(n)
	require.NoError(g, err)
	subs := make([]fdbmodel.Submission, n)
	for i := range subs {
		subs[i] = fdbmodel.Submission{ID: ids[i], Drawn: true, Spec: layout.Spec{Function: "go:f"}, Inputs: inputs(i)}
	}
	_, err = g.c.Submit(g.ctx, subs)
	require.NoError(g, err)
	return ids
}

// run claims and realizes what is ready, until n have run.
func (g *graphCost) run(n int) {
	for n > 0 {
		answer, err := g.worker.Claim(g.ctx, fdbmodel.ClaimRequest{
			Free: layout.Resources{Slots: fdbmodel.MaxClaim}, Max: fdbmodel.MaxClaim})
		require.NoError(g, err)
		require.NotEmpty(g, answer.Futures)
		done := make([]fdbmodel.Completion, len(answer.Futures))
		for i := range done {
			done[i] = fdbmodel.Completion{Future: &answer.Futures[i], Result: &layout.Result{Value: []byte("v")}}
		}
		_, err = g.worker.Finish(g.ctx, done)
		require.NoError(g, err)
		n -= len(done)
	}
}

func none(int) []layout.ID { return nil }

// TestCostOfEdges counts what futures and their edges cost the store: what has no
// inputs pays for none.
func TestCostOfEdges(t *testing.T) {
	t.Parallel()
	const n = fdbmodel.MaxClaim
	costs := map[string]bench.Usage{}
	for name, play := range map[string]func(*graphCost){
		"plain": func(g *graphCost) { g.submit(n, none); g.run(n) },
		"two layers": func(g *graphCost) {
			above := g.submit(n, none)
			g.submit(n, func(i int) []layout.ID { return []layout.ID{above[i], above[(i+1)%n]} })
			g.run(2 * n)
		},
		"pairs": func(g *graphCost) {
			above := g.submit(n, none)
			g.submit(n, func(i int) []layout.ID { return above[i : i+1] })
			g.run(2 * n)
		},
		"fan-in": func(g *graphCost) {
			above := g.submit(n, none)
			g.submit(1, func(int) []layout.ID { return above })
			g.run(n + 1)
		},
		"fan-out": func(g *graphCost) {
			above := g.submit(1, none)
			g.submit(n, func(int) []layout.ID { return above })
			g.run(n + 1)
		},
	} {
		g := newGraphCost(t)
		before := g.meter.Usage()
		play(g)
		now := g.meter.Usage()
		costs[name] = bench.Usage{Commits: now.Commits - before.Commits, Conflicts: now.Conflicts - before.Conflicts,
			Mutations: now.Mutations - before.Mutations, Reads: now.Reads - before.Reads}
		require.Zero(t, costs[name].Conflicts, name)
	}
	plain := costs["plain"]
	require.LessOrEqual(t, plain.Mutations, int64(649))
	require.LessOrEqual(t, plain.Reads, int64(11))
	require.LessOrEqual(t, plain.Commits, int64(4))
	// The end of a future that others use reads it, and that of another one a moment after its claim does not: reads
	// are counted in all.
	for name, want := range map[string]struct {
		futures, edges, mutations float64
		reads                     int64
		commits                   float64
	}{
		"two layers": {2 * n, 2 * n, 3.51, 291, 0},
		"pairs":      {2 * n, n, 5.02, 287, 0},
		"fan-in":     {n + 1, n, 5.15, 284, 6},
		"fan-out":    {n + 1, n, 4.11, 27, 4},
	} {
		alone := want.futures / n
		cost := costs[name]
		require.LessOrEqual(t, (float64(cost.Mutations)-alone*float64(plain.Mutations))/want.edges, want.mutations, name)
		require.LessOrEqual(t, cost.Reads, want.reads, name)
		require.LessOrEqual(t, float64(cost.Commits)-alone*float64(plain.Commits), want.commits, name)
	}
}
