package head_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/bubble"
)

// crowdedStore has no room for a watch, and calls enough once very many were asked for.
type crowdedStore struct {
	kv.Database
	asked  *atomic.Int64
	enough func()
}

type crowdedTx struct {
	kv.Tx
	crowdedStore
}

type refusedWatch struct{}

func (s crowdedStore) Begin(o kv.Options) kv.Tx { return crowdedTx{s.Database.Begin(o), s} }

func (t crowdedTx) Watch([]byte) kv.Watch {
	if t.asked.Add(1) == 1000 {
		t.enough()
	}
	return refusedWatch{}
}

func (refusedWatch) Cancel()    {}
func (refusedWatch) Err() error { return kv.ErrTooManyWatches }
func (refusedWatch) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// TestAChunkWithoutAWatchIsLookedAtNowAndThen: not all the time, while its worker is busy.
func TestAChunkWithoutAWatchIsLookedAtNowAndThen(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		db := crowdedStore{embedded.OpenMemory(embedded.Options{}), &atomic.Int64{}, cancel}
		cluster, err := fdbmodel.Open(ctx, db, "batches", fdbmodel.Options{})
		require.NoError(t, err)
		registered, err := cluster.Register(ctx, layout.WorkerInfo{Queues: []string{layout.DefaultQueue},
			Functions: []string{"go:run"}, Capacity: layout.Resources{Slots: 1}})
		require.NoError(t, err)
		order := head.Order{Chunk: batch.Chunk{ID: "chunk", Worker: string(registered.ID())},
			Template: &batch.Template{FunctionID: "go:run"}, Items: []batch.Item{{Index: 1}}}
		err = head.NewCluster(cluster).Run(ctx, order, func(context.Context, []batch.Completion) error { return nil })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, db.asked.Load(), int64(20))
		require.NoError(t, db.Close())
	})
}
