package faultkv_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest/reference"
)

func wrap(o faultkv.Options) *faultkv.Database {
	return faultkv.Wrap(reference.Open(reference.Options{}), o)
}

func TestConformance(t *testing.T) {
	kvtest.Run(t, kvtest.Options{New: func(testing.TB) kv.Database { return wrap(faultkv.Options{}) }, ManyWatches: true})
}

func TestConformanceWithFaults(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			kvtest.Run(t, kvtest.Options{
				New:    func(testing.TB) kv.Database { return wrap(faultkv.Everywhere(seed, 0.08)) },
				Faults: true,
			})
		})
	}
}

func key(name string) []byte { return []byte(name) }

// read returns the value of a key, past all faults.
func read(t *testing.T, db *faultkv.Database, name string) string {
	t.Helper()
	db.Pause()
	defer db.Resume()
	tx := db.Begin(kv.Options{})
	defer tx.Cancel()
	value, err := tx.Get(key(name)).Wait(t.Context())
	require.NoError(t, err)
	return string(value)
}

// write begins a transaction that sets a key.
func write(db *faultkv.Database, tag, name string) kv.Tx {
	tx := db.Begin(kv.Options{Tag: tag})
	tx.Set(key(name), []byte("v"))
	return tx
}

func commit(t *testing.T, tx kv.Tx) error {
	t.Helper()
	done, err := tx.Commit(t.Context())
	if err != nil {
		require.Equal(t, kv.Committed{Version: kv.NoVersion}, done)
		_, again := tx.Commit(t.Context())
		require.ErrorIs(t, again, kv.ErrUsed)
		_, again = tx.Get(key("a")).Wait(t.Context())
		require.ErrorIs(t, again, kv.ErrUsed)
		tx.Set(key("after the commit"), nil)
		tx.Cancel()
	}
	return err
}

func TestFailNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault         faultkv.Fault
		err           error
		before, after string
	}{
		{faultkv.Conflict, kv.ErrConflict, "", ""},
		{faultkv.TooOld, kv.ErrTooOld, "", ""},
		{faultkv.Unavailable, kv.ErrUnavailable, "", ""},
		{faultkv.UnknownCommitted, kv.ErrUnknownResult, "v", "v"},
		{faultkv.UnknownLost, kv.ErrUnknownResult, "", ""},
		{faultkv.UnknownLate, kv.ErrUnknownResult, "", "v"},
	} {
		db := wrap(faultkv.Options{LateAfter: -1})
		require.ErrorIs(t, func() error { db.FailNext(c.fault, nil); return commit(t, write(db, "", "a")) }(), c.err)
		require.Equal(t, c.before, read(t, db, "a"), c.fault)
		committed := db.Flush()
		require.Equal(t, c.after, read(t, db, "a"), c.fault)
		require.Equal(t, c.fault == faultkv.UnknownLate, committed == 1)
		require.Empty(t, read(t, db, "after the commit"))

		want := faultkv.Counts{Committed: committed}
		want.Injected[c.fault] = 1
		require.Equal(t, want, db.Counts())
		require.NoError(t, commit(t, write(db, "", "b")))
		require.Equal(t, "v", read(t, db, "b"))
	}
}

func TestFailNextMatchesTags(t *testing.T) {
	t.Parallel()
	db := wrap(faultkv.Options{})
	tagged := func(want string) func(string) bool { return func(tag string) bool { return tag == want } }
	db.FailNext(faultkv.UnknownLost, tagged("claim"))
	db.FailNext(faultkv.Conflict, tagged("submit"))
	db.FailNext(faultkv.TooOld, tagged("claim"))

	require.NoError(t, commit(t, write(db, "other", "a")))
	require.ErrorIs(t, commit(t, write(db, "submit", "a")), kv.ErrConflict)
	reader := db.Begin(kv.Options{Tag: "claim"})
	_, err := reader.Get(key("a")).Wait(t.Context())
	require.NoError(t, err)
	require.NoError(t, commit(t, reader), "only writing transactions fail")

	db.Pause()
	require.NoError(t, commit(t, write(db, "claim", "a")))
	db.Resume()
	require.ErrorIs(t, commit(t, write(db, "claim", "a")), kv.ErrUnknownResult)
	require.ErrorIs(t, commit(t, write(db, "claim", "a")), kv.ErrTooOld)
	require.NoError(t, commit(t, write(db, "claim", "a")))
}

func TestLateCommitIsMadeAfterOperations(t *testing.T) {
	t.Parallel()
	for _, after := range []int{1, 2, 7} {
		db := wrap(faultkv.Options{Seed: 3, LateAfter: after})
		db.FailNext(faultkv.UnknownLate, nil)
		require.ErrorIs(t, commit(t, write(db, "", "a")), kv.ErrUnknownResult)
		for range after {
			_, err := db.Begin(kv.Options{}).ReadVersion(t.Context())
			require.NoError(t, err)
		}
		require.Equal(t, 1, db.Counts().Committed)
		require.Equal(t, "v", read(t, db, "a"))
	}
}

func TestLateCommitKeepsItsReadVersion(t *testing.T) {
	t.Parallel()
	db := wrap(faultkv.Options{LateAfter: -1})
	tx := write(db, "", "a")
	tx.AddReadConflictKey(key("guard"))
	db.FailNext(faultkv.UnknownLate, nil)
	require.ErrorIs(t, commit(t, tx), kv.ErrUnknownResult)
	require.NoError(t, commit(t, write(db, "", "guard")))
	require.Zero(t, db.Flush())
	require.Empty(t, read(t, db, "a"))
	require.Equal(t, 1, db.Counts().Died)
}

func TestLateCommitDiesWithTheLifetime(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	db := faultkv.Wrap(reference.Open(reference.Options{Now: func() time.Time { return now }}),
		faultkv.Options{LateAfter: -1})
	db.FailNext(faultkv.UnknownLate, nil)
	require.ErrorIs(t, commit(t, write(db, "", "a")), kv.ErrUnknownResult)
	now = now.Add(kv.TxLifetime + 1)
	require.Zero(t, db.Flush())
	require.Empty(t, read(t, db, "a"))
}

func TestCloseDropsLateCommits(t *testing.T) {
	t.Parallel()
	inner := reference.Open(reference.Options{})
	db := faultkv.Wrap(inner, faultkv.Options{LateAfter: -1})
	db.FailNext(faultkv.UnknownLate, nil)
	require.ErrorIs(t, commit(t, write(db, "", "a")), kv.ErrUnknownResult)
	require.Equal(t, 1, db.Counts().Pending)
	require.NoError(t, db.Close())
	require.Zero(t, db.Flush())
	_, err := inner.Begin(kv.Options{}).ReadVersion(t.Context())
	require.ErrorIs(t, err, kv.ErrClosed)
}

func TestWatchesEndWithTheirCommit(t *testing.T) {
	t.Parallel()
	for fault, want := range map[faultkv.Fault]error{
		faultkv.Conflict: kv.ErrConflict, faultkv.UnknownCommitted: kv.ErrUnknownResult,
		faultkv.UnknownLate: kv.ErrUnknownResult,
	} {
		db := wrap(faultkv.Options{})
		db.FailNext(fault, nil)
		tx := write(db, "", "a")
		w := tx.Watch(key("b"))
		require.NoError(t, w.Err())
		require.ErrorIs(t, commit(t, tx), want)
		<-w.Done()
		require.ErrorIs(t, w.Err(), want)
		w.Cancel()
		require.ErrorIs(t, w.Err(), want)
	}
}

func TestReadFaults(t *testing.T) {
	t.Parallel()
	o := faultkv.Options{}
	o.Read[faultkv.TooOld] = 1
	db := wrap(o)
	tx := write(db, "", "a")
	_, err := tx.Get(key("b")).Wait(t.Context())
	require.ErrorIs(t, err, kv.ErrTooOld)
	db.Pause()
	_, err = tx.Snapshot().GetRange(kv.Single(key("b")), kv.RangeOptions{}).Wait(t.Context())
	require.ErrorIs(t, err, kv.ErrTooOld, "a transaction that is too old stays so")
	require.ErrorIs(t, commit(t, tx), kv.ErrTooOld)

	o = faultkv.Options{}
	o.Read[faultkv.Unavailable] = 1
	db.SetOptions(o)
	db.Resume()
	tx = write(db, "", "a")
	_, err = tx.ReadVersion(t.Context())
	require.ErrorIs(t, err, kv.ErrUnavailable)
	require.NoError(t, commit(t, tx))
	require.Equal(t, "v", read(t, db, "a"))
}

func TestRecover(t *testing.T) {
	t.Parallel()
	db := wrap(faultkv.Options{LateAfter: -1})
	open := write(db, "", "a")
	_, err := open.Get(key("b")).Wait(t.Context())
	require.NoError(t, err)
	watching := db.Begin(kv.Options{})
	w := watching.Watch(key("w"))
	require.NoError(t, commit(t, watching))
	const late = 20
	for i := range late {
		db.FailNext(faultkv.UnknownLate, nil)
		require.ErrorIs(t, commit(t, write(db, "", fmt.Sprint("late", i))), kv.ErrUnknownResult)
	}

	db.Recover()
	<-w.Done()
	require.NoError(t, w.Err())
	_, err = open.Get(key("b")).Wait(t.Context())
	require.ErrorIs(t, err, kv.ErrTooOld)
	require.ErrorIs(t, commit(t, open), kv.ErrTooOld)
	counts := db.Counts()
	require.Zero(t, counts.Pending)
	require.Equal(t, late, counts.Committed+counts.Died)
	require.Positive(t, counts.Committed)
	require.Positive(t, counts.Died)
	committed := 0
	for i := range late {
		committed += len(read(t, db, fmt.Sprint("late", i)))
	}
	require.Equal(t, counts.Committed, committed)
	require.NoError(t, commit(t, write(db, "", "a")))
}

// held is a store whose commits wait.
type held struct {
	kv.Database
	committing, release chan struct{}
}

type heldTx struct {
	kv.Tx
	db held
}

func (h held) Begin(o kv.Options) kv.Tx { return heldTx{h.Database.Begin(o), h} }

func (t heldTx) Commit(ctx context.Context) (kv.Committed, error) {
	t.db.committing <- struct{}{}
	<-t.db.release
	return t.Tx.Commit(ctx)
}

func TestRecoverMakesCommitsUnknown(t *testing.T) {
	t.Parallel()
	inner := held{reference.Open(reference.Options{}), make(chan struct{}), make(chan struct{})}
	db := faultkv.Wrap(inner, faultkv.Options{})
	result := make(chan error)
	go func() {
		_, err := write(db, "", "a").Commit(context.Background())
		result <- err
	}()
	<-inner.committing
	db.Recover()
	close(inner.release)
	require.ErrorIs(t, <-result, kv.ErrUnknownResult)
	require.Equal(t, "v", read(t, db, "a"))
}

func TestLatency(t *testing.T) {
	t.Parallel()
	var slept []time.Duration
	db := wrap(faultkv.Options{Latency: time.Second, Sleep: func(ctx context.Context, d time.Duration) error {
		slept = append(slept, d)
		return ctx.Err()
	}})
	tx := write(db, "", "a")
	_, err := tx.Get(key("b")).Wait(t.Context())
	require.NoError(t, err)
	require.NoError(t, commit(t, tx))
	require.Len(t, slept, 2)
	for _, d := range slept {
		require.Less(t, d, time.Second)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = write(db, "", "c").Commit(ctx)
	require.ErrorIs(t, err, kv.ErrUnknownResult)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, read(t, db, "c"))
}

// history runs transactions in one goroutine and notes how each ended.
func history(t *testing.T, seed uint64) []string {
	db := wrap(faultkv.Everywhere(seed, 0.1))
	var lines []string
	for i := range 200 {
		tx := write(db, "", fmt.Sprint("k", i%7))
		_, readErr := tx.Get(key("a")).Wait(t.Context())
		_, err := tx.Commit(t.Context())
		tx.Cancel()
		lines = append(lines, fmt.Sprint(readErr, err, db.Counts()))
		if i%50 == 49 {
			db.Recover()
		}
	}
	return lines
}

func TestSeedRepeats(t *testing.T) {
	t.Parallel()
	require.Equal(t, history(t, 5), history(t, 5))
	require.NotEqual(t, history(t, 5), history(t, 6))
}

// waiter is a store that is asked when to run again.
type waiter struct {
	kv.Database
	asked []kv.Tx
}

func (w *waiter) Traits() kv.Traits {
	return kv.Traits{Exclusive: true, Opening: "first", WaitConflict: w.waitConflict}
}

func (w *waiter) waitConflict(_ context.Context, tx kv.Tx) error {
	w.asked = append(w.asked, tx)
	return nil
}

func TestOnlyRealConflictsAreWaitedFor(t *testing.T) {
	t.Parallel()
	inner := &waiter{Database: reference.Open(reference.Options{})}
	db := faultkv.Wrap(inner, faultkv.Options{})
	db.FailNext(faultkv.Conflict, nil)
	result, err := kv.Transact(t.Context(), db, kv.Retry{}, func(a kv.Attempt) error {
		a.AddReadConflictKey(key("a"))
		_, err := a.Get(key("a")).Wait(t.Context())
		if a.Number == 2 {
			require.Empty(t, inner.asked)
			other := inner.Begin(kv.Options{})
			other.Set(key("a"), nil)
			_, err := other.Commit(t.Context())
			require.NoError(t, err)
		}
		a.Set(key("b"), nil)
		return err
	})
	require.NoError(t, err)
	require.Equal(t, 3, result.Attempts)
	require.Len(t, inner.asked, 1)
}

// TestTraitsAreTheStores looks through the faults.
func TestTraitsAreTheStores(t *testing.T) {
	t.Parallel()
	traits := faultkv.Wrap(&waiter{}, faultkv.Options{}).Traits()
	require.True(t, traits.Exclusive)
	require.Equal(t, "first", traits.Opening)
}

func TestNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, "conflict too-old unavailable unknown-committed unknown-lost unknown-late", fmt.Sprint(
		faultkv.Conflict, faultkv.TooOld, faultkv.Unavailable, faultkv.UnknownCommitted, faultkv.UnknownLost,
		faultkv.UnknownLate))
}
