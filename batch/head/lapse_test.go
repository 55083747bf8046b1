package head_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/storetest"
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

// TestALostChunkLeavesNothing: items whose worker was lost go to others, and none of them may run for this chunk too.
func TestALostChunkLeavesNothing(t *testing.T) {
	t.Parallel()
	cluster, err := fdbmodel.Open(t.Context(), storetest.New(t), "batches", fdbmodel.Options{})
	require.NoError(t, err)
	registered, err := cluster.Register(t.Context(), layout.WorkerInfo{Queues: []string{layout.DefaultQueue},
		Functions: []string{"go:run"}, Capacity: layout.Resources{Slots: 1}})
	require.NoError(t, err)
	of := batch.Template{FunctionID: "go:run"}
	order := head.Order{Chunk: batch.Chunk{ID: "chunk", Worker: string(registered.ID())}, Template: &of}
	ids := make([]layout.ID, 501) // more than are looked at while the worker is busy
	for i := range ids {
		order.Items = append(order.Items, batch.Item{Index: i})
		ids[i] = layout.BatchItemID("chunk", i)
	}
	looks := 0
	err = head.NewCluster(cluster).Run(t.Context(), order, func(ctx context.Context, ended []batch.Completion) error {
		if looks++; looks > 1 {
			return nil
		}
		for some := range slices.Chunk(ids, fdbmodel.MaxAssign) {
			if _, err := cluster.Unassign(ctx, registered.ID(), some); err != nil {
				return err
			}
		}
		return nil
	})
	require.ErrorIs(t, err, head.ErrWorkerLost)
	left, err := cluster.GetMany(t.Context(), ids)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestAChunkForAWorkerThatHasGoneEnds has nothing to deliver.
func TestAChunkForAWorkerThatHasGoneEnds(t *testing.T) {
	t.Parallel()
	cluster, err := fdbmodel.Open(t.Context(), storetest.New(t), "batches", fdbmodel.Options{})
	require.NoError(t, err)
	of := batch.Template{FunctionID: "go:run"}
	order := head.Order{Chunk: batch.Chunk{ID: "chunk", Worker: "gone"}, Template: &of, Items: []batch.Item{{Index: 1}}}
	err = head.NewCluster(cluster).Run(t.Context(), order, func(_ context.Context, ended []batch.Completion) error {
		require.Empty(t, ended)
		return nil
	})
	require.NoError(t, err)
}

// TestLargeResultsAreDeliveredInParts has a head collect more bytes of results than it has in memory at a time.
func TestLargeResultsAreDeliveredInParts(t *testing.T) {
	t.Parallel()
	cluster, err := fdbmodel.Open(t.Context(), storetest.New(t), "batches", fdbmodel.Options{})
	require.NoError(t, err)
	w, err := workers.FromCluster(cluster, workers.Options{})
	require.NoError(t, err)
	large := make([]byte, 6<<20)
	require.NoError(t, w.Register("run", func(context.Context, []byte) ([]byte, error) { return large, nil }))
	storetest.Background(t, w.Run)
	<-w.Ready()
	of := batch.Template{FunctionID: "go:run"}
	order := head.Order{Chunk: batch.Chunk{ID: "chunk", Worker: string(w.ID())}, Template: &of}
	for i := range 5 {
		order.Items = append(order.Items, batch.Item{Index: i})
	}
	dispatcher, gone := head.NewCluster(cluster), errors.New("the head is gone")
	err = dispatcher.Run(t.Context(), order, func(context.Context, []batch.Completion) error { return gone })
	require.ErrorIs(t, err, gone)
	require.Eventually(t, func() bool { return w.Stats().Ran == 5 }, time.Minute, time.Millisecond)
	var indexes []int
	err = dispatcher.Run(t.Context(), order, func(_ context.Context, ended []batch.Completion) error {
		size := 0
		for _, c := range ended {
			size += len(c.Result.Stdout)
			indexes = append(indexes, c.Index)
		}
		require.LessOrEqual(t, size, 18<<20)
		return nil
	})
	require.NoError(t, err)
	require.ElementsMatch(t, []int{0, 1, 2, 3, 4}, indexes)
}
