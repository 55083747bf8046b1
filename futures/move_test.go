package futures_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/transfer"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// movingStore wraps a store that can be replaced by another one.
type movingStore struct {
	store atomic.Pointer[embedded.Store]
}

func (m *movingStore) Begin(o kv.Options) kv.Tx { return m.store.Load().Begin(o) }
func (m *movingStore) Close() error             { return nil }

// runWorker runs a worker in a store until stop is called.
func runWorker(t *testing.T, db kv.Database) (stop func()) {
	cluster, err := fdbmodel.Open(context.Background(), db, "move", fdbmodel.Options{})
	require.NoError(t, err)
	w, err := workers.FromCluster(cluster, workers.Options{})
	require.NoError(t, err)
	require.NoError(t, w.Register("echo", func(_ context.Context, args []byte) ([]byte, error) { return args, nil }))
	return storetest.Background(t, w.Run)
}

// TestAwaitSpansAMove lets a client await while its cluster moves to a store
// whose versions are lower than those of the mail that it has read. The mail of
// the new store ends the await: the client's own recheck would come too late.
func TestAwaitSpansAMove(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	disk := vfs.NewMem()
	var old *embedded.Store
	for range 3 {
		if old != nil {
			require.NoError(t, old.Close())
		}
		var err error
		old, err = embedded.Open(ctx, "old", embedded.Options{FS: disk})
		require.NoError(t, err)
	}
	young := embedded.OpenMemory(embedded.Options{})
	var moving movingStore
	moving.store.Store(old)
	c, err := futures.New(ctx, &moving, futures.Options{Cluster: "move", Config: layout.Config{
		Heartbeat: 20 * time.Millisecond, DeadAfter: 10 * time.Second,
	}})
	require.NoError(t, err)
	stop := runWorker(t, old)
	first, err := c.Submit(ctx, futures.Task{Function: "go:echo", Args: []byte("1")})
	require.NoError(t, err)
	_, err = first.Await(ctx)
	require.NoError(t, err)
	stop()

	var spanning []*futures.Future
	for range 20 {
		f, err := c.Submit(ctx, futures.Task{Function: "go:echo", Args: []byte("2")})
		require.NoError(t, err)
		spanning = append(spanning, f)
	}
	elsewhere := c.Future(spanning[0].ID())
	_, err = transfer.Migrate(ctx, old, young, "move", transfer.Options{IgnoreLive: true})
	require.NoError(t, err)
	before, err := old.Begin(kv.Options{}).ReadVersion(ctx)
	require.NoError(t, err)
	after, err := young.Begin(kv.Options{}).ReadVersion(ctx)
	require.NoError(t, err)
	require.Less(t, after, before)
	moving.store.Store(young)
	stop = runWorker(t, young)
	for _, f := range append(spanning, elsewhere) {
		result, err := f.Await(ctx)
		require.NoError(t, err)
		require.Equal(t, []byte("2"), result.Value)
	}
	next, err := c.Submit(ctx, futures.Task{Function: "go:echo", Args: []byte("3")})
	require.NoError(t, err)
	_, err = next.Await(ctx)
	require.NoError(t, err)
	stop()
	require.NoError(t, c.Close(ctx))
	require.NoError(t, old.Close())
	require.NoError(t, young.Close())
}
