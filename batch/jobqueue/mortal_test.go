package jobqueue_test

import (
	"context"
	"sync/atomic"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// mortal is a store as one process sees it that dies at a commit: before that has
// committed, or after. It answers nothing from then on.
type mortal struct {
	kv.Database
	left      atomic.Int64 // commits until it dies
	committed bool
	died      atomic.Bool
}

// newMortal returns a store that dies at the n-th commit, never for 0.
func newMortal(db kv.Database, n int, committed bool) *mortal {
	m := &mortal{Database: db, committed: committed}
	m.left.Store(int64(n))
	return m
}

// Traits implements kv.TraitsOf.
func (m *mortal) Traits() kv.Traits { return kv.TraitsOf(m.Database) }

// Begin implements kv.Database.
func (m *mortal) Begin(o kv.Options) kv.Tx { return &mortalTx{m.Database.Begin(o), m} }

// Close implements kv.Database. The store outlives the process.
func (m *mortal) Close() error { return nil }

type mortalTx struct {
	kv.Tx
	m *mortal
}

func (t *mortalTx) Get(key []byte) kv.Pending[[]byte] {
	if t.m.died.Load() {
		return kv.Ready[[]byte](nil, kv.ErrClosed)
	}
	return t.Tx.Get(key)
}

func (t *mortalTx) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	if t.m.died.Load() {
		return kv.Ready(kv.Page{}, kv.ErrClosed)
	}
	return t.Tx.GetRange(r, o)
}

func (t *mortalTx) Commit(ctx context.Context) (kv.Committed, error) {
	if t.m.died.Load() {
		return kv.Committed{}, kv.ErrClosed
	}
	if t.m.left.Add(-1) != 0 {
		return t.Tx.Commit(ctx)
	}
	t.m.died.Store(true)
	if t.m.committed {
		_, _ = t.Tx.Commit(ctx)
	}
	return kv.Committed{}, kv.ErrClosed
}
