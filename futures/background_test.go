package futures_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/internal/storetest"
)

// heldWakes is a store whose searches for idle workers begin and then wait.
type heldWakes struct {
	kv.Database
	begun, goOn chan struct{}
}

type heldWakeTx struct {
	kv.Tx
	store *heldWakes
}

func (h *heldWakes) Begin(o kv.Options) kv.Tx {
	if o.Tag == "futura-wake" {
		return heldWakeTx{h.Database.Begin(o), h}
	}
	return h.Database.Begin(o)
}

func (t heldWakeTx) Snapshot() kv.Reader { return heldWakeReader(t) }

type heldWakeReader heldWakeTx

func (r heldWakeReader) Get(key []byte) kv.Pending[[]byte] { return r.Tx.Snapshot().Get(key) }

func (r heldWakeReader) GetRange(span kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return kv.Later(func(ctx context.Context) (kv.Page, error) {
		r.store.begun <- struct{}{}
		select {
		case <-r.store.goOn:
			return r.Tx.Snapshot().GetRange(span, o).Wait(ctx)
		case <-ctx.Done():
			return kv.Page{}, ctx.Err()
		}
	})
}

// TestASubmitDoesNotWaitForIdleWorkers has the search for those of other processes take long: submits return, share the
// next search, and Close waits for the last one.
func TestASubmitDoesNotWaitForIdleWorkers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := &heldWakes{storetest.New(t), make(chan struct{}, 9), make(chan struct{})}
	c, err := futures.New(ctx, store, futures.Options{NoHints: true})
	require.NoError(t, err)
	for i := range 3 {
		_, err = c.Submit(ctx, futures.Task{Function: "go:f"})
		require.NoError(t, err)
		if i == 0 {
			<-store.begun
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- c.Close(ctx) }()
	store.goOn <- struct{}{}
	<-store.begun
	select {
	case <-closed:
		require.Fail(t, "a search is under way")
	default:
	}
	store.goOn <- struct{}{}
	require.NoError(t, <-closed)
	require.Empty(t, store.begun)
}

// TestCloseWaitsForASearchOnlySoLong has a search end with the client where the store does not answer.
func TestCloseWaitsForASearchOnlySoLong(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx := t.Context()
		db := newBubble()
		defer db.Close()
		store := &heldWakes{db, make(chan struct{}, 9), make(chan struct{})}
		c, err := futures.New(ctx, store, futures.Options{NoHints: true})
		require.NoError(t, err)
		_, err = c.Submit(ctx, futures.Task{Function: "go:f"})
		require.NoError(t, err)
		<-store.begun
		require.NoError(t, c.Close(ctx))
	})
}
