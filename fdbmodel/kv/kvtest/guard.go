package kvtest

import (
	"bytes"
	"encoding/binary"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/stretchr/testify/require"
)

// guarded runs fn until it is known to have been committed, and exactly once:
// it writes a guard key of its own, keeps it in its read conflicts in every
// attempt, and looks for it wherever an earlier attempt may have been
// committed.
func (b *bundle) guarded(db kv.Database, retry kv.Retry, fn func(kv.Tx) error) (kv.Result, error) {
	guard := binary.BigEndian.AppendUint64(bytes.Clone(b.guards), b.guardsUsed.Add(1))
	return kv.Transact(b.ctx, db, retry, func(a kv.Attempt) error {
		if a.MaybeCommitted {
			mark, err := a.Get(guard).Wait(b.ctx)
			if err != nil || mark != nil {
				return err
			}
		}
		a.AddReadConflictKey(guard)
		a.Set(guard, []byte{1})
		return fn(a.Tx)
	})
}

// retry returns how the case runs transactions again: at once where failures
// are injected, as waiting cures none of them.
func (b *bundle) retry() kv.Retry {
	if b.o.Faults {
		return kv.Retry{Random: noWait}
	}
	return kv.Retry{}
}

func noWait() float64 { return 0 }

// once runs fn exactly once on the case's store.
func (b *bundle) once(fn func(kv.Tx) error) {
	b.Helper()
	_, err := b.guarded(b.db, b.retry(), fn)
	require.NoError(b, err)
}

// update commits what fn writes, exactly once.
func (b *bundle) update(fn func(kv.Tx)) kv.Committed {
	b.Helper()
	result, err := b.guarded(b.db, b.retry(), func(tx kv.Tx) error {
		fn(tx)
		return nil
	})
	require.NoError(b, err)
	return result.Committed
}

// put sets the named keys, each to its own name.
func (b *bundle) put(names ...string) kv.Committed {
	b.Helper()
	return b.update(func(tx kv.Tx) {
		for _, name := range names {
			tx.Set(b.key(name), []byte(name))
		}
	})
}
