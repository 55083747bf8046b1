package fdbmodel_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/owners"
	"github.com/futura-run/futura/internal/storetest"
)

func TestNeighboursAreMadeOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for seed := range uint64(20) {
		faults := faultkv.Wrap(storetest.New(t), faultkv.Everywhere(seed, 0.1))
		c := modeltest.OpenNeighbours(t, faults)
		var makers sync.WaitGroup
		for range 3 {
			makers.Go(func() {
				answers, err := c.Submit(ctx, modeltest.Neighbours(25))
				if err != nil || len(answers) != 25 {
					t.Errorf("%d answers, %v", len(answers), err)
				}
			})
		}
		makers.Wait()
		faults.Flush()
		counts, err := owners.Of(c).Counts(ctx, layout.DefaultQueue, "b")
		require.NoError(t, err)
		require.EqualValues(t, 25, counts[layout.Ready])
		report, err := audit.Check(ctx, c, audit.Options{})
		require.NoError(t, err)
		require.Empty(t, report.Problems, "seed %d", seed)

		other := modeltest.Neighbours(25)
		other[20].Spec.Function = "go:g"
		_, err = c.Submit(ctx, other)
		require.ErrorIs(t, err, fdbmodel.ErrIDInUse)
	}
}
