package edge_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/internal/shards"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestAScanThatWasCutOffIsToGoOn has more marks in a shard than one call reads, of futures that are gone.
func TestAScanThatWasCutOffIsToGoOn(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	const marks = 64*(shards.MaxRefills+1) + 1
	_, err := s.C.Transact(s.Ctx, kv.Options{}, func(tx kv.Attempt) error {
		for i := range marks {
			id := layout.BatchItemID("cb24c8cd-9c67-4bfc-8c87-2ce2ef4d8f10", i)
			id[15] = 0 // its shard
			tx.Set(s.C.Keys().Resolve(id), layout.Encode(&layout.ResolveRecord{}))
		}
		return nil
	})
	require.NoError(t, err)
	_, more, err := s.C.ResolveEdges(s.Ctx)
	require.NoError(t, err)
	require.True(t, more)
	for calls := 1; more; calls++ {
		_, more, err = s.C.ResolveEdges(s.Ctx)
		require.NoError(t, err)
		require.Less(t, calls, 5)
	}
	s.RequireSound()
}
