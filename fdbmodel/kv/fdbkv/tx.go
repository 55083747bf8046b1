//go:build fdb

package fdbkv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// tx is a transaction. One without a database is wrapped: it belongs to the
// user, who commits it.
type tx struct {
	db       *Database
	native   fdb.Transaction
	unusable error       // why there is no native transaction
	ended    atomic.Bool // by Commit or Cancel

	reading bool  // set by the first read and by SetReadVersion
	wrote   bool  // set by the first write and write conflict
	mistake error // what the commit fails with
	watches []*watch
}

// Wrap lets Futura read and write in a transaction that belongs to the user,
// who commits it and retries it: what is written so becomes true together with
// what the user wrote. Errors of its reads carry the fdb.Error that they came
// from, so that a function run by the bindings' Transact may return them.
//
// Commit and watches of the wrapped transaction fail with ErrNotOwner, and
// Cancel does nothing. A mistake, such as a key that is too long, makes Commit
// return it too; Err of the wrapped transaction tells it before that.
func Wrap(native fdb.Transaction) *Wrapped { return &Wrapped{tx: tx{native: native}} }

// Wrapped is a user's transaction. It implements kv.Tx.
type Wrapped struct {
	tx
	local kv.Local
}

// Local returns what is remembered of the transaction.
func (w *Wrapped) Local() *kv.Local { return &w.local }

// Err returns the first mistake that was made in a write, or what was refused after parts of it were written,
// and nil if there was neither. The user must not commit a transaction with an error, as something is
// missing from it.
func (w *Wrapped) Err() error { return cmp.Or(w.mistake, w.local.Failed()) }

// usable returns why nothing can be done with the transaction.
func (t *tx) usable() error {
	switch {
	case t.db != nil && t.db.isClosed():
		return kv.ErrClosed
	case t.unusable != nil:
		return t.unusable
	case t.ended.Load():
		return kv.ErrUsed
	}
	return nil
}

// fail makes the commit fail with the first of the transaction's mistakes.
func (t *tx) fail(err error) {
	if t.mistake == nil {
		t.mistake = err
	}
}

// ReadVersion implements kv.Tx.
func (t *tx) ReadVersion(ctx context.Context) (kv.Version, error) {
	if err := t.usable(); err != nil {
		return 0, err
	}
	t.reading = true
	version, err := wait(ctx, t, t.native.GetReadVersion().Get)
	return kv.Version(version), err
}

// SetReadVersion implements kv.Tx. FoundationDB has no versions below 1.
func (t *tx) SetReadVersion(v kv.Version) {
	if t.usable() != nil {
		return
	}
	if t.reading {
		t.fail(kv.ErrUsed)
		return
	}
	t.reading = true
	t.native.SetReadVersion(int64(max(v, 1)))
	runtime.KeepAlive(t)
}

// Commit implements kv.Tx.
func (t *tx) Commit(ctx context.Context) (kv.Committed, error) {
	failed := kv.Committed{Version: kv.NoVersion}
	if err := t.usable(); err != nil {
		return failed, err
	}
	if t.db == nil {
		return failed, errors.Join(ErrNotOwner, t.mistake)
	}
	if t.ended.Swap(true) {
		return failed, kv.ErrUsed
	}
	done, err := t.commit(ctx)
	if err != nil {
		t.abort()
		t.endWatches(err)
		return failed, err
	}
	return done, nil
}

func (t *tx) commit(ctx context.Context) (kv.Committed, error) {
	none := kv.Committed{Version: kv.NoVersion}
	if t.mistake != nil {
		return none, t.mistake
	}
	if !t.wrote {
		if len(t.watches) == 0 {
			return none, nil
		}
		return none, t.awaitCommit(ctx)
	}
	// Asked before the commit, as it can't be asked after it.
	stamp := t.native.GetVersionstamp()
	if err := t.awaitCommit(ctx); err != nil {
		return none, err
	}
	version, err := t.native.GetCommittedVersion()
	if err != nil {
		return none, fmt.Errorf("%w: no version of a commit that succeeded: %w", kv.ErrUnknownResult, err)
	}
	bytes, err := stamp.Get()
	if err != nil || len(bytes) != kv.StampSize {
		return none, fmt.Errorf("%w: no stamp of a commit that succeeded: %w", kv.ErrUnknownResult, err)
	}
	return kv.Committed{Version: kv.Version(version), Stamp: kv.Stamp(bytes)}, nil
}

// awaitCommit commits, and says that the result is unknown if ctx or the store
// ends first.
func (t *tx) awaitCommit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return errors.Join(kv.ErrUnknownResult, err)
	}
	if err := t.db.enter(t); err != nil {
		return err
	}
	defer t.db.leave(t)
	stop := context.AfterFunc(ctx, t.abort)
	err := t.native.Commit().Get()
	if stop(); err == nil {
		return nil
	}
	err = translateCommit(err)
	if errors.Is(err, kv.ErrUnknownResult) {
		switch {
		case ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case t.db.isClosed():
			return errors.Join(err, kv.ErrClosed)
		}
	}
	return err
}

// Cancel implements kv.Tx.
func (t *tx) Cancel() {
	if t.db == nil || t.unusable != nil || t.ended.Swap(true) {
		return
	}
	t.abort()
	t.endWatches(kv.ErrCancelled)
}

// abort ends everything that waits in the transaction. The bindings free a
// transaction that nothing refers to, also while it is being cancelled.
func (t *tx) abort() {
	t.native.Cancel()
	runtime.KeepAlive(t)
}

func (t *tx) endWatches(reason error) {
	for _, w := range t.watches {
		w.end(reason)
	}
	t.watches = nil
}
