package head_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers"
)

// TestItemsOfAHeadThatIsGoneLapse: a janitor removes the future of an item that no head collects, as any other.
func TestItemsOfAHeadThatIsGoneLapse(t *testing.T) {
	t.Parallel()
	eachStore(t, func(b *bed) {
		w, gone, of := b.work(workers.Options{}), errors.New("the head is gone"), template(1)
		order := head.Order{Chunk: batch.Chunk{ID: "chunk", Worker: string(w.ID())}, Template: &of,
			Items: []batch.Item{{Index: 3, Arguments: []string{"go"}}}}
		dispatcher, id := head.NewCluster(b.cluster), layout.BatchItemID("chunk", 3)
		err := dispatcher.Run(b.Context(), order, func(_ context.Context, ended []batch.Completion) error {
			if len(ended) == 0 {
				return nil
			}
			return gone
		})
		require.ErrorIs(b, err, gone)
		row, err := b.cluster.Get(b.Context(), id)
		require.NoError(b, err)
		require.Equal(b, layout.Realized, row.State())
		require.False(b, row.Spec.IsKept())
		require.NoError(b, dispatcher.Run(b.Context(), order, func(context.Context, []batch.Completion) error { return nil }))
		_, err = b.cluster.Get(b.Context(), id)
		require.ErrorIs(b, err, fdbmodel.ErrNotFound)
		require.Len(b, b.ran("go"), 1)
	})
}
