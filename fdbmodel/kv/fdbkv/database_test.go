//go:build fdb

package fdbkv_test

import (
	"context"
	"testing"
	"time"

	"github.com/apple/foundationdb/bindings/go/src/fdb"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/fdbkv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// key returns a key of the test's own.
func key(t testing.TB, name string) []byte {
	packed, err := tuple.Pack("fdbkv", t.Name(), name)
	require.NoError(t, err)
	return packed
}

func set(t testing.TB, db kv.Database, k []byte, value string) kv.Committed {
	result, err := kv.Transact(t.Context(), db, kv.Retry{}, func(a kv.Attempt) error {
		a.Set(k, []byte(value))
		return nil
	})
	require.NoError(t, err)
	return result.Committed
}

func get(t testing.TB, db kv.Database, k []byte) (value string) {
	_, err := kv.Transact(t.Context(), db, kv.Retry{}, func(a kv.Attempt) error {
		stored, err := a.Get(k).Wait(t.Context())
		value = string(stored)
		return err
	})
	require.NoError(t, err)
	return value
}

// TestTooManyWatches is not parallel: all tests share the cluster's watches.
func TestTooManyWatches(t *testing.T) {
	const inOneTx = 500
	db := open(t)
	set(t, db, key(t, "a"), "unchanged")
	var watches []kv.Watch
	for range kv.MaxWatches / inOneTx {
		watches = append(watches, watch(t, db, key(t, "a"), inOneTx)...)
	}
	tooMany := watch(t, db, key(t, "a"), 1)[0]
	<-tooMany.Done()
	require.ErrorIs(t, tooMany.Err(), kv.ErrTooManyWatches)
	for _, w := range watches {
		require.NoError(t, w.Err())
		w.Cancel()
	}
	for _, w := range watches {
		<-w.Done()
		require.ErrorIs(t, w.Err(), kv.ErrCancelled)
	}
	again := watch(t, db, key(t, "a"), 1)[0]
	set(t, db, key(t, "a"), "changed")
	<-again.Done()
	require.NoError(t, again.Err())
}

// watch returns n watches that count.
func watch(t testing.TB, db kv.Database, k []byte, n int) (watches []kv.Watch) {
	tx := db.Begin(kv.Options{})
	for range n {
		watches = append(watches, tx.Watch(k))
	}
	_, err := tx.Commit(t.Context())
	require.NoError(t, err)
	return watches
}

func TestCloseEndsWhatIsOpen(t *testing.T) {
	t.Parallel()
	db := open(t)
	armed, unarmedTx, reading := watch(t, db, key(t, "a"), 1)[0], db.Begin(kv.Options{}), db.Begin(kv.Options{})
	unarmed := unarmedTx.Watch(key(t, "a"))
	answer := reading.Get(key(t, "a"))
	require.NoError(t, db.Close())
	require.NoError(t, db.Close())

	for _, w := range []kv.Watch{armed, unarmed, db.Begin(kv.Options{}).Watch(key(t, "a"))} {
		<-w.Done()
		require.ErrorIs(t, w.Err(), kv.ErrClosed)
	}
	_, err := answer.Wait(t.Context())
	require.ErrorIs(t, err, kv.ErrClosed)
	for _, tx := range []kv.Tx{unarmedTx, reading, db.Begin(kv.Options{})} {
		tx.Set(key(t, "a"), nil)
		_, err = tx.Get(key(t, "a")).Wait(t.Context())
		require.ErrorIs(t, err, kv.ErrClosed)
		_, err = tx.Snapshot().GetRange(kv.Prefix(key(t, "a")), kv.RangeOptions{}).Wait(t.Context())
		require.ErrorIs(t, err, kv.ErrClosed)
		_, err = tx.ReadVersion(t.Context())
		require.ErrorIs(t, err, kv.ErrClosed)
		_, err = tx.Commit(t.Context())
		require.ErrorIs(t, err, kv.ErrClosed)
		tx.Cancel()
	}
	require.Empty(t, get(t, open(t), key(t, "a")))
}

// TestEndedContext leaves a wait and a commit at a cluster that never answers.
func TestEndedContext(t *testing.T) {
	t.Parallel()
	db, err := fdbkv.OpenSilent(silentCluster(t))
	require.NoError(t, err)

	tx := db.Begin(kv.Options{})
	answers := []kv.Pending[[]byte]{tx.Get(key(t, "a")), tx.Snapshot().Get(key(t, "b"))}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for _, answer := range answers {
		_, err := answer.Wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}

	tx = db.Begin(kv.Options{})
	w := tx.Watch(key(t, "a"))
	tx.Set(key(t, "b"), nil)
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = tx.Commit(ctx)
	require.ErrorIs(t, err, kv.ErrUnknownResult)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	<-w.Done()
	require.ErrorIs(t, w.Err(), kv.ErrUnknownResult)

	reading, writing := db.Begin(kv.Options{}), db.Begin(kv.Options{})
	failed := make(chan error)
	go func() {
		_, err := reading.Get(key(t, "a")).Wait(context.Background())
		failed <- err
	}()
	writing.Set(key(t, "a"), nil)
	go func() {
		_, err := writing.Commit(context.Background())
		failed <- err
	}()
	require.NoError(t, db.Close())
	for range 2 {
		require.ErrorIs(t, <-failed, kv.ErrClosed)
	}
}

func TestTag(t *testing.T) {
	t.Parallel()
	db := open(t)
	for tag, fits := range map[string]bool{"sixteen letters!": true, "seventeen letters": false} {
		tx := db.Begin(kv.Options{Tag: tag})
		tx.Set(key(t, "a"), []byte(tag))
		_, err := tx.Commit(t.Context())
		if fits {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, tag)
		}
	}
	require.Equal(t, "sixteen letters!", get(t, db, key(t, "a")))
}

func TestErrorsCarryTheirCause(t *testing.T) {
	t.Parallel()
	tx := open(t).Begin(kv.Options{})
	tx.SetReadVersion(1)
	_, err := tx.Get(key(t, "a")).Wait(t.Context())
	require.ErrorIs(t, err, kv.ErrTooOld)
	var cause fdb.Error
	require.ErrorAs(t, err, &cause)
	require.Equal(t, 1007, cause.Code)
	require.ErrorContains(t, err, "1007")
}

func TestUnknownAtomicOperation(t *testing.T) {
	t.Parallel()
	for _, op := range []kv.AtomicOp{0, kv.CompareAndClear + 1} {
		tx := open(t).Begin(kv.Options{})
		tx.Atomic(op, key(t, "a"), nil)
		_, err := tx.Commit(t.Context())
		require.ErrorContains(t, err, "unknown atomic operation")
	}
}
