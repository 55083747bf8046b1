package futurestore_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// cutOff is a store whose commits go on after their contexts have ended, as those
// that have left for a server do.
type cutOff struct {
	kv.Database
	underWay sync.WaitGroup
}

// Traits names those of the store that do not look at its transactions.
func (d *cutOff) Traits() kv.Traits {
	traits := kv.TraitsOf(d.Database)
	traits.WaitConflict = nil
	return traits
}

// Begin implements kv.Database.
func (d *cutOff) Begin(o kv.Options) kv.Tx { return &cutOffTx{Tx: d.Database.Begin(o), db: d} }

type cutOffTx struct {
	kv.Tx
	db        *cutOff
	committed atomic.Bool
}

// Commit implements kv.Tx.
func (t *cutOffTx) Commit(ctx context.Context) (kv.Committed, error) {
	if ctx.Err() != nil || t.committed.Swap(true) {
		return t.Tx.Commit(ctx)
	}
	type result struct {
		kv.Committed
		err error
	}
	done := make(chan result, 1)
	t.db.underWay.Go(func() {
		committed, err := t.Tx.Commit(context.WithoutCancel(ctx))
		done <- result{committed, err}
	})
	select {
	case r := <-done:
		return r.Committed, r.err
	case <-ctx.Done():
		return kv.Committed{Version: kv.NoVersion}, errors.Join(kv.ErrUnknownResult, ctx.Err())
	}
}

// Cancel implements kv.Tx.
func (t *cutOffTx) Cancel() {
	if !t.committed.Load() {
		t.Tx.Cancel()
	}
}
