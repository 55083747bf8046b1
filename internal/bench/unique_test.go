package bench_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/bench"
)

// TestCostOfAUniqueFuture compares what unique futures ask of the store with plain ones:
// one read and one mutation more at the submit, one mutation at the end, and nothing in
// between.
func TestCostOfAUniqueFuture(t *testing.T) {
	t.Parallel()
	const n = 20
	cost := func(change func(i int, s *fdbmodel.Submission)) (submit, run bench.Usage) {
		g := newGraphCost(t)
		subs := make([]fdbmodel.Submission, n)
		ids, err := g.c.DrawIDs(n)
		require.NoError(t, err)
		for i := range subs {
			subs[i] = fdbmodel.Submission{ID: ids[i], Drawn: true, Spec: layout.Spec{Function: "go:f"}}
			change(i, &subs[i])
		}
		start := g.meter.Usage()
		_, err = g.c.Submit(g.ctx, subs)
		require.NoError(t, err)
		submitted := g.meter.Usage()
		g.run(n)
		return since(submitted, start), since(g.meter.Usage(), submitted)
	}
	plainSubmit, plainRun := cost(func(int, *fdbmodel.Submission) {})
	submit, run := cost(func(i int, s *fdbmodel.Submission) { s.Unique = &fdbmodel.Unique{Key: fmt.Sprint(i)} })
	require.Equal(t, bench.Usage{Reads: n, Mutations: n}, since(submit, plainSubmit))
	require.Equal(t, bench.Usage{Mutations: n}, since(run, plainRun))
	_, run = cost(func(i int, s *fdbmodel.Submission) {
		s.Unique = &fdbmodel.Unique{Key: fmt.Sprint(i), Until: layout.UntilEver}
	})
	require.Zero(t, since(run, plainRun))
}

func since(now, before bench.Usage) bench.Usage {
	return bench.Usage{Commits: now.Commits - before.Commits, Conflicts: now.Conflicts - before.Conflicts,
		Mutations: now.Mutations - before.Mutations, Reads: now.Reads - before.Reads, Keys: now.Keys - before.Keys}
}
