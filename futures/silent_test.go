package futures_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/bubble"
)

// silentStore does not answer reads once it is silent.
type silentStore struct {
	kv.Database
	silent atomic.Bool
}

func (s *silentStore) Begin(o kv.Options) kv.Tx { return &silentTx{s.Database.Begin(o), s} }

type silentTx struct {
	kv.Tx
	store *silentStore
}

func (s *silentTx) Snapshot() kv.Reader { return silentReader{s.Tx.Snapshot(), s.store} }

func (s *silentTx) Get(key []byte) kv.Pending[[]byte] { return silentReader{s.Tx, s.store}.Get(key) }

type silentReader struct {
	kv.Reader
	store *silentStore
}

func (s silentReader) Get(key []byte) kv.Pending[[]byte] {
	if !s.store.silent.Load() {
		return s.Reader.Get(key)
	}
	return kv.Later(func(ctx context.Context) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
}

// TestAwaitSaysThatTheStoreIsSilent where it can't say what a future waits for.
func TestAwaitSaysThatTheStoreIsSilent(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		db := &silentStore{Database: embedded.OpenMemory(embedded.Options{})}
		c, err := futures.New(t.Context(), db, futures.Options{})
		require.NoError(t, err)
		f, err := c.Submit(t.Context(), futures.Task{Function: "go:nobody"})
		require.NoError(t, err)
		ended, end := context.WithCancel(t.Context())
		end()
		db.silent.Store(true)
		_, err = f.Await(ended)
		db.silent.Store(false)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "the store has not said in 2s what it waits for")
		require.NoError(t, errors.Join(c.Close(t.Context()), db.Close()))
	})
}
