package kvtest

import (
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/stretchr/testify/require"
)

func watchCases() []testCase {
	cases := []testCase{
		{name: "Watch/BesideARead", run: watchBesideRead},
		{name: "Watch/FiresOnChangeBeforeItsCommit", exact: true, run: watchMissedChange},
		{name: "Watch/CountsFromOwnWrite", exact: true, run: watchOwnWrite},
		{name: "Watch/Cancelled", exact: true, run: watchCancelled},
		{name: "Watch/TransactionCancelled", exact: true, run: watchTxCancelled},
		{name: "Watch/TransactionFails", exact: true, run: watchTxFails},
		{name: "Watch/IllegalKey", exact: true, run: watchIllegalKey},
		{name: "Watch/SurvivesTransact", run: watchSurvives},
		{name: "Watch/TellsEmptyFromAbsent", run: watchEmpty},
		{name: "Watch/ManyOnOneKey", run: watchMany},
		{name: "Watch/TooMany", exact: true, run: watchTooMany},
		{name: "Watch/ArmedDuringAChange", exact: true, run: func(b *bundle) { b.armDuring(smallChanges, 0) }},
		{name: "Watch/ArmedDuringALargeChange", exact: true, run: func(b *bundle) {
			b.armDuring(largeChanges, fillers)
		}},
	}
	for name, change := range map[string]func(*bundle, kv.Tx){
		"Set":        func(b *bundle, tx kv.Tx) { tx.Set(b.key("a"), []byte("new")) },
		"Clear":      func(b *bundle, tx kv.Tx) { tx.Clear(b.key("a")) },
		"ClearRange": func(b *bundle, tx kv.Tx) { tx.ClearRange(b.span("", "")) },
		"Add":        func(b *bundle, tx kv.Tx) { tx.Atomic(kv.Add, b.key("a"), []byte{1}) },
		"Stamp":      func(b *bundle, tx kv.Tx) { tx.SetVersionstampedValue(b.key("a"), []byte(blank), 0) },
	} {
		cases = append(cases, testCase{name: "Watch/FiresOn" + name, run: func(b *bundle) {
			b.put("a")
			w := b.watch("a")
			b.update(func(tx kv.Tx) { change(b, tx) })
			b.fires(w)
		}})
	}
	return append(cases, testCase{name: "Watch/FiresOnInsert", run: func(b *bundle) {
		w := b.watch("a")
		b.put("a")
		b.fires(w)
	}})
}

// watch sets a watch on the named key in a transaction of its own.
func (b *bundle) watch(name string) kv.Watch {
	b.Helper()
	var w kv.Watch
	_, err := kv.Transact(b.ctx, b.db, b.retry(), func(a kv.Attempt) error {
		w = a.Watch(b.key(name))
		return nil
	})
	require.NoError(b, err)
	b.Cleanup(w.Cancel)
	return w
}

// watchTimeout bounds the wait for a watch, on the slowest machine.
const watchTimeout = 30 * time.Second

// ends waits for the end of w and returns its error.
func (b *bundle) ends(w kv.Watch) error {
	b.Helper()
	select {
	case <-w.Done():
		return w.Err()
	case <-time.After(watchTimeout):
		require.Fail(b, "the watch did not end")
		return nil
	}
}

// fires asserts that w fires. A store with faults may fail it instead, with what
// it may fail a transaction with: the caller that waits is woken all the same.
func (b *bundle) fires(w kv.Watch) {
	b.Helper()
	if err := b.ends(w); !b.o.Faults || !kv.Retryable(err) {
		require.NoError(b, err)
	}
}

func watchMissedChange(b *bundle) {
	b.put("a")
	tx := b.begin()
	w := tx.Watch(b.key("a"))
	_, err := tx.ReadVersion(b.ctx)
	require.NoError(b, err)
	require.NoError(b, w.Err())
	b.update(func(tx kv.Tx) { tx.Set(b.key("a"), []byte("new")) })
	b.commit(tx)
	b.fires(w)
}

// watchBesideRead sets a watch beside a read that is waited for after the commit: what the read does not show, the
// watch does.
func watchBesideRead(b *bundle) {
	for i := range 5 {
		var page kv.Pending[kv.Page]
		var w kv.Watch
		_, err := kv.Transact(b.ctx, b.db, b.retry(), func(a kv.Attempt) error {
			page = a.Snapshot().GetRange(b.span("a", "b"), kv.RangeOptions{Limit: 9})
			w = a.Watch(b.key("a"))
			return nil
		})
		require.NoError(b, err)
		b.Cleanup(w.Cancel)
		got, err := page.Wait(b.ctx)
		if !b.o.Faults || !kv.Retryable(err) {
			require.NoError(b, err)
			require.Len(b, got.Items, min(i, 1))
		}
		b.update(func(tx kv.Tx) { tx.Set(b.key("a"), fmt.Append(nil, i)) })
		b.fires(w)
	}
}

func watchOwnWrite(b *bundle) {
	tx := b.begin()
	tx.Set(b.key("a"), []byte("own"))
	w := tx.Watch(b.key("a"))
	b.Cleanup(w.Cancel)
	b.commit(tx)
	b.update(func(tx kv.Tx) { tx.Set(b.key("a"), []byte("new")) })
	b.fires(w)
}

func watchCancelled(b *bundle) {
	tx := b.begin()
	early := tx.Watch(b.key("a"))
	late := tx.Watch(b.key("b"))
	early.Cancel()
	require.ErrorIs(b, b.ends(early), kv.ErrCancelled)
	b.commit(tx)
	require.NoError(b, late.Err())
	late.Cancel()
	late.Cancel()
	require.ErrorIs(b, b.ends(late), kv.ErrCancelled)

	fired := b.watch("c")
	b.put("c")
	b.fires(fired)
	fired.Cancel()
	require.NoError(b, fired.Err())
}

func watchTxCancelled(b *bundle) {
	tx := b.begin()
	w := tx.Watch(b.key("a"))
	tx.Cancel()
	require.ErrorIs(b, b.ends(w), kv.ErrCancelled)
	b.put("a")
	require.ErrorIs(b, w.Err(), kv.ErrCancelled)

	tx = b.begin()
	b.commit(tx)
	require.ErrorIs(b, b.ends(tx.Watch(b.key("a"))), kv.ErrUsed)
}

func watchTxFails(b *bundle) {
	tx := b.beginRead()
	w := tx.Watch(b.key("a"))
	tx.AddReadConflictKey(b.key("b"))
	tx.Set(b.key("c"), nil)
	b.put("b")
	_, err := tx.Commit(b.ctx)
	require.ErrorIs(b, err, kv.ErrConflict)
	require.ErrorIs(b, b.ends(w), kv.ErrConflict)
}

func watchIllegalKey(b *bundle) {
	require.ErrorIs(b, b.ends(b.begin().Watch([]byte{0xff})), kv.ErrIllegalKey)
}

func watchSurvives(b *bundle) {
	b.put("a", "b")
	w := b.watch("a")
	b.put("b")
	select {
	case <-w.Done():
		b.fires(w) // a watch may fire without a change, and do nothing else
		w = b.watch("a")
	default:
	}
	b.update(func(tx kv.Tx) { tx.Set(b.key("a"), []byte("new")) })
	b.fires(w)
}

func watchEmpty(b *bundle) {
	w := b.watch("a")
	b.update(func(tx kv.Tx) { tx.Set(b.key("a"), nil) })
	b.fires(w)
	w = b.watch("a")
	b.update(func(tx kv.Tx) { tx.Clear(b.key("a")) })
	b.fires(w)
}

func watchMany(b *bundle) {
	var watches []kv.Watch
	for range 20 {
		watches = append(watches, b.watch("a"))
	}
	watches[0].Cancel()
	b.put("a")
	for _, w := range watches[1:] {
		b.fires(w)
	}
}

// watchesPerTx keeps transactions small while very many watches are opened.
const watchesPerTx = 500

func watchTooMany(b *bundle) {
	if !b.o.ManyWatches {
		b.Skip("opening 10,000 watches is not cheap on this store")
	}
	var watches []kv.Watch
	for len(watches) < kv.MaxWatches {
		tx := b.begin()
		for range watchesPerTx {
			watches = append(watches, tx.Watch(b.key(fmt.Sprint(len(watches)))))
		}
		b.commit(tx)
	}
	for _, w := range watches {
		require.NoError(b, w.Err())
	}
	require.ErrorIs(b, b.ends(b.begin().Watch(b.key("one more"))), kv.ErrTooManyWatches)
	watches[0].Cancel()
	require.ErrorIs(b, b.ends(watches[0]), kv.ErrCancelled)
	b.update(func(tx kv.Tx) { tx.Set(b.key("1"), []byte("new")) })
	b.fires(watches[1])
	for range 2 {
		watches = append(watches, b.watch("again"))
	}
	require.ErrorIs(b, b.ends(b.begin().Watch(b.key("one more"))), kv.ErrTooManyWatches)
	for _, w := range watches {
		w.Cancel()
	}
	b.fires(func() kv.Watch { w := b.watch("last"); b.put("last"); return w }())
}
