package faultkv

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// tx is a transaction with faults. What it does not override goes straight to
// the wrapped store.
type tx struct {
	kv.Tx
	db         *Database
	tag        string
	generation int

	failed     error // why all reads and the commit fail
	wrote      bool
	ended      bool
	conflicted bool // the wrapped store itself reported a conflict
	watches    []*watch
}

func injected(err error) error { return fmt.Errorf("%w: %w", errInjected, err) }

// beforeRead returns the fault that a read meets.
func (t *tx) beforeRead() error {
	t.db.operation()
	if t.ended {
		return kv.ErrUsed
	}
	if t.failed == nil && t.db.recovered(t.generation) {
		t.failed = injected(kv.ErrTooOld)
	}
	if t.failed != nil {
		return t.failed
	}
	fault, ok := t.db.readFault()
	switch {
	case ok && fault == TooOld:
		t.failed = injected(kv.ErrTooOld)
		return t.failed
	case ok && fault == Unavailable:
		return injected(kv.ErrUnavailable)
	}
	return nil
}

// Get implements kv.Tx.
func (t *tx) Get(key []byte) kv.Pending[[]byte] { return get(t, t.Tx, key) }

// GetRange implements kv.Tx.
func (t *tx) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return getRange(t, t.Tx, r, o)
}

// Snapshot implements kv.Tx.
func (t *tx) Snapshot() kv.Reader { return snapshot{tx: t, inner: t.Tx.Snapshot()} }

type snapshot struct {
	tx    *tx
	inner kv.Reader
}

// Get implements kv.Reader.
func (s snapshot) Get(key []byte) kv.Pending[[]byte] { return get(s.tx, s.inner, key) }

// GetRange implements kv.Reader.
func (s snapshot) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return getRange(s.tx, s.inner, r, o)
}

func get(t *tx, r kv.Reader, key []byte) kv.Pending[[]byte] {
	if err := t.beforeRead(); err != nil {
		return kv.Ready[[]byte](nil, err)
	}
	return delayed(t.db, r.Get(key))
}

func getRange(t *tx, r kv.Reader, span kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	if err := t.beforeRead(); err != nil {
		return kv.Ready(kv.Page{}, err)
	}
	return delayed(t.db, r.GetRange(span, o))
}

func delayed[T any](d *Database, p kv.Pending[T]) kv.Pending[T] {
	return kv.Later(func(ctx context.Context) (T, error) {
		if err := d.sleep(ctx); err != nil {
			var none T
			return none, err
		}
		return p.Wait(ctx)
	})
}

// ReadVersion implements kv.Tx.
func (t *tx) ReadVersion(ctx context.Context) (kv.Version, error) {
	if err := t.beforeRead(); err != nil {
		return 0, err
	}
	return t.Tx.ReadVersion(ctx)
}

// writing is the wrapped transaction, for a write.
func (t *tx) writing() kv.Tx {
	t.wrote = true
	return t.Tx
}

// Set implements kv.Tx.
func (t *tx) Set(key, value []byte) { t.writing().Set(key, value) }

// Clear implements kv.Tx.
func (t *tx) Clear(key []byte) { t.writing().Clear(key) }

// ClearRange implements kv.Tx.
func (t *tx) ClearRange(r kv.Range) {
	t.wrote = t.wrote || !r.Empty()
	t.Tx.ClearRange(r)
}

// Atomic implements kv.Tx.
func (t *tx) Atomic(op kv.AtomicOp, key, param []byte) { t.writing().Atomic(op, key, param) }

// SetVersionstampedKey implements kv.Tx.
func (t *tx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	t.writing().SetVersionstampedKey(key, offset, value)
}

// SetVersionstampedValue implements kv.Tx.
func (t *tx) SetVersionstampedValue(key, value []byte, offset int) {
	t.writing().SetVersionstampedValue(key, value, offset)
}

// AddWriteConflictKey implements kv.Tx.
func (t *tx) AddWriteConflictKey(key []byte) { t.writing().AddWriteConflictKey(key) }

// AddWriteConflictRange implements kv.Tx.
func (t *tx) AddWriteConflictRange(r kv.Range) {
	t.wrote = t.wrote || !r.Empty()
	t.Tx.AddWriteConflictRange(r)
}

// Watch implements kv.Tx.
func (t *tx) Watch(key []byte) kv.Watch {
	w := &watch{db: t.db, inner: t.Tx.Watch(key)}
	t.db.addWatch(w)
	t.watches = append(t.watches, w)
	return w
}

// Commit implements kv.Tx.
func (t *tx) Commit(ctx context.Context) (kv.Committed, error) {
	t.db.operation()
	if t.ended {
		return kv.Committed{Version: kv.NoVersion}, kv.ErrUsed
	}
	t.ended = true
	done, err := t.commit(ctx)
	if err != nil {
		for _, w := range t.watches {
			w.end(err)
		}
		t.Tx.Cancel()
	}
	return done, err
}

func (t *tx) commit(ctx context.Context) (kv.Committed, error) {
	none := kv.Committed{Version: kv.NoVersion}
	if !t.wrote {
		return t.Tx.Commit(ctx)
	}
	if t.failed != nil {
		return none, t.failed
	}
	if t.db.recovered(t.generation) {
		return none, injected(kv.ErrTooOld)
	}
	if err := t.db.sleep(ctx); err != nil {
		return none, errors.Join(kv.ErrUnknownResult, err)
	}
	fault, ok := t.db.commitFault(t.tag)
	if !ok {
		done, err := t.Tx.Commit(ctx)
		t.conflicted = errors.Is(err, kv.ErrConflict)
		if err == nil && t.db.recovered(t.generation) {
			return none, injected(kv.ErrUnknownResult)
		}
		return done, err
	}
	return none, t.commitWith(ctx, fault)
}

// commitWith ends the transaction with a fault.
func (t *tx) commitWith(ctx context.Context, fault Fault) error {
	switch fault {
	case Conflict:
		return injected(kv.ErrConflict)
	case TooOld:
		return injected(kv.ErrTooOld)
	case Unavailable:
		return injected(kv.ErrUnavailable)
	case UnknownCommitted:
		if _, err := t.Tx.Commit(ctx); err != nil {
			t.conflicted = errors.Is(err, kv.ErrConflict)
			return err
		}
	case UnknownLate:
		// A commit that is under way has its read version.
		if _, err := t.Tx.ReadVersion(ctx); err != nil {
			return err
		}
		t.handOver()
	}
	return injected(kv.ErrUnknownResult)
}

// handOver gives the wrapped transaction to the late commits, out of reach of
// callers that still hold t.
func (t *tx) handOver() {
	t.db.hold(t.Tx)
	t.Tx = t.db.inner.Begin(kv.Options{})
	t.Tx.Cancel()
}

// Cancel implements kv.Tx.
func (t *tx) Cancel() {
	t.ended = true
	t.Tx.Cancel()
}
