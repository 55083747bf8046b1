package head_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/internal/storetest"
)

// TestAChunkWithoutAWatchIsLookedAtNowAndThen: not all the time, while its worker is busy.
func TestAChunkWithoutAWatchIsLookedAtNowAndThen(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		db := storetest.NewUnwatched(embedded.OpenMemory(embedded.Options{}))
		cluster, err := fdbmodel.Open(ctx, db, "batches", fdbmodel.Options{})
		require.NoError(t, err)
		registered, err := cluster.Register(ctx, layout.WorkerInfo{Queues: []string{layout.DefaultQueue},
			Functions: []string{"go:run"}, Capacity: layout.Resources{Slots: 1}})
		require.NoError(t, err)
		order := head.Order{Chunk: batch.Chunk{ID: "chunk", Worker: string(registered.ID())},
			Template: &batch.Template{FunctionID: "go:run"}, Items: []batch.Item{{Index: 1}}}
		err = head.NewCluster(cluster).Run(ctx, order, func(context.Context, []batch.Completion) error { return nil })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, db.Asked(), 20)
		require.NoError(t, db.Close())
	})
}
