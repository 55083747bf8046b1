package kvtest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/stretchr/testify/require"
)

func retryCases() []testCase {
	return []testCase{
		{name: "Retry/ConflictRunsAgain", exact: true, run: retryConflict},
		{name: "Retry/MaxAttempts", exact: true, run: retryMaxAttempts},
		{name: "Retry/ErrorOfTheFunction", exact: true, run: retryFunctionError},
		{name: "Retry/PanicOfTheFunction", run: retryPanic},
		{name: "Retry/ContextEnds", run: retryContext},
		{name: "Retry/UnknownResults", run: retryUnknown},
		{name: "Retry/UnknownResultWithoutGuard", exact: true, run: retryUnknownUnguarded},
		{name: "Retry/ManyFaults", run: retryManyFaults},
		{name: "Tx/UsedAfterCommit", exact: true, run: txUsedAfterCommit},
		{name: "Tx/UsedAfterFailure", exact: true, run: txUsedAfterFailure},
		{name: "Tx/UsedAfterCancel", exact: true, run: txUsedAfterCancel},
		{name: "Tx/EmptyCommits", exact: true, run: txEmpty},
		{name: "Tx/CommitWithEndedContext", exact: true, run: txEndedContext},
	}
}

func retryConflict(b *bundle) {
	result, err := kv.Transact(b.ctx, b.db, kv.Retry{}, func(a kv.Attempt) error {
		value, err := a.Get(b.key("a")).Wait(b.ctx)
		if err != nil {
			return err
		}
		if a.Number < 3 {
			b.put("a")
		}
		a.Set(b.key("out"), []byte(fmt.Sprint(a.Number, show(value))))
		return nil
	})
	require.NoError(b, err)
	require.GreaterOrEqual(b, result.Attempts, 3)
	require.GreaterOrEqual(b, result.Conflicts, 2)
	require.Equal(b, fmt.Sprint(result.Attempts, "a"), b.get("out"))
}

func retryMaxAttempts(b *bundle) {
	result, err := kv.Transact(b.ctx, b.db, kv.Retry{MaxAttempts: 3}, func(a kv.Attempt) error {
		a.Set(b.key("x"), nil)
		return fmt.Errorf("wrapped: %w", kv.ErrConflict)
	})
	require.ErrorIs(b, err, kv.ErrConflict)
	require.Equal(b, 3, result.Attempts)
	require.Equal(b, "", b.scan("", ""))
}

func retryFunctionError(b *bundle) {
	refused := errors.New("refused")
	runs := 0
	_, err := kv.Transact(b.ctx, b.db, kv.Retry{}, func(a kv.Attempt) error {
		runs++
		a.Set(b.key("a"), nil)
		return refused
	})
	require.Equal(b, refused, err)
	require.Equal(b, 1, runs)
	require.Equal(b, "", b.scan("", ""))
}

func retryPanic(b *bundle) {
	var tx kv.Tx
	require.PanicsWithValue(b, "stop", func() {
		_, _ = kv.Transact(b.ctx, b.db, kv.Retry{}, func(a kv.Attempt) error {
			tx = a.Tx
			a.Set(b.key("a"), nil)
			panic("stop")
		})
	})
	_, err := tx.Commit(b.ctx)
	require.ErrorIs(b, err, kv.ErrUsed)
	require.Equal(b, "", b.scan("", ""))
}

func retryContext(b *bundle) {
	ctx, cancel := context.WithCancel(b.ctx)
	_, err := kv.Transact(ctx, b.db, kv.Retry{}, func(a kv.Attempt) error {
		if a.Number == 3 {
			cancel()
		}
		return kv.ErrConflict
	})
	require.Error(b, err)
	require.Error(b, ctx.Err())
	_, err = kv.Transact(ctx, b.db, kv.Retry{}, func(kv.Attempt) error {
		require.Fail(b, "a function must not run after its context ended")
		return nil
	})
	require.ErrorIs(b, err, context.Canceled)
}

// unknowns are the three truths behind an unknown result.
func unknowns() []faultkv.Fault {
	return []faultkv.Fault{faultkv.UnknownCommitted, faultkv.UnknownLost, faultkv.UnknownLate}
}

// retryUnknown injects each form of unknown result into a guarded increment,
// with every moment at which a late commit may be made.
func retryUnknown(b *bundle) {
	want := 0
	for _, fault := range unknowns() {
		for after := 1; after <= 12; after++ {
			db := faultkv.Wrap(b.db, faultkv.Options{Seed: uint64(after), LateAfter: after})
			db.FailNext(fault, func(tag string) bool { return tag == "increment" })
			result, err := b.guarded(db, kv.Retry{Options: kv.Options{Tag: "increment"}}, func(tx kv.Tx) error {
				tx.Atomic(kv.Add, b.key("n"), number(1))
				return nil
			})
			require.NoError(b, err)
			require.GreaterOrEqual(b, result.Attempts, 2)
			db.Flush()
			want++
			require.Equal(b, want, b.number("n"), "%s, landing within %d operations", fault, after)
			require.Equal(b, 1, db.Counts().Injected[fault])
		}
	}
}

func number(n int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }

// number reads the named key as one.
func (b *bundle) number(name string) int {
	b.Helper()
	value := b.get(name)
	if value == absent {
		return 0
	}
	return int(binary.LittleEndian.Uint64([]byte(value)))
}

// retryUnknownUnguarded shows that the guard is what makes the difference.
func retryUnknownUnguarded(b *bundle) {
	for _, fault := range unknowns() {
		db := faultkv.Wrap(b.db, faultkv.Options{LateAfter: -1})
		db.FailNext(fault, nil)
		result, err := kv.Transact(b.ctx, db, kv.Retry{}, func(a kv.Attempt) error {
			require.Equal(b, a.Number > 1, a.MaybeCommitted)
			a.Atomic(kv.Add, b.key(fault.String()), number(1))
			return nil
		})
		require.NoError(b, err)
		require.Equal(b, 2, result.Attempts)
		db.Flush()
	}
	require.Equal(b, 2, b.number(faultkv.UnknownCommitted.String()))
	require.Equal(b, 1, b.number(faultkv.UnknownLost.String()))
	require.Equal(b, 2, b.number(faultkv.UnknownLate.String()))
}

func retryManyFaults(b *bundle) {
	const increments = 100
	db := faultkv.Wrap(b.db, faultkv.Everywhere(1, 0.08))
	at := kv.Retry{Random: noWait}
	for i := range increments {
		_, err := b.guarded(db, at, func(tx kv.Tx) error {
			tx.Atomic(kv.Add, b.key("n"), number(1))
			_, err := tx.Get(b.key("m")).Wait(b.ctx)
			return err
		})
		require.NoError(b, err)
		if i%20 == 19 {
			db.Recover()
		}
	}
	db.Flush()
	require.Equal(b, increments, b.number("n"))
}

// requireUsed expects that tx answers everything with ErrUsed.
func (b *bundle) requireUsed(tx kv.Tx) {
	b.Helper()
	_, err := tx.Get(b.key("a")).Wait(b.ctx)
	require.ErrorIs(b, err, kv.ErrUsed)
	_, err = tx.GetRange(b.span("", ""), kv.RangeOptions{}).Wait(b.ctx)
	require.ErrorIs(b, err, kv.ErrUsed)
	_, err = tx.Snapshot().Get(b.key("a")).Wait(b.ctx)
	require.ErrorIs(b, err, kv.ErrUsed)
	_, err = tx.ReadVersion(b.ctx)
	require.ErrorIs(b, err, kv.ErrUsed)
	tx.Set(b.key("late"), nil)
	_, err = tx.Commit(b.ctx)
	require.ErrorIs(b, err, kv.ErrUsed)
	tx.Cancel()
	require.Equal(b, "<absent>", b.get("late"))
}

func txUsedAfterCommit(b *bundle) {
	tx := b.begin()
	tx.Set(b.key("a"), []byte("v"))
	b.commit(tx)
	b.requireUsed(tx)
	require.Equal(b, "a=v", b.scan("", ""))

	tx = b.begin()
	_, err := tx.Get(b.key("a")).Wait(b.ctx)
	require.NoError(b, err)
	b.commit(tx)
	b.requireUsed(tx)
}

func txUsedAfterFailure(b *bundle) {
	tx := b.beginRead()
	tx.AddReadConflictKey(b.key("a"))
	tx.Set(b.key("out"), nil)
	b.put("a")
	_, err := tx.Commit(b.ctx)
	require.ErrorIs(b, err, kv.ErrConflict)
	b.requireUsed(tx)
}

func txUsedAfterCancel(b *bundle) {
	tx := b.begin()
	tx.Set(b.key("a"), nil)
	tx.Cancel()
	b.requireUsed(tx)
	require.Equal(b, "", b.scan("", ""))
}

func txEmpty(b *bundle) {
	empty := kv.Committed{Version: kv.NoVersion}
	require.Equal(b, empty, b.commit(b.begin()))
	tx := b.begin()
	tx.ClearRange(b.span("a", "a"))
	tx.AddWriteConflictRange(b.span("a", "a"))
	require.Equal(b, empty, b.commit(tx))
}

func txEndedContext(b *bundle) {
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	tx := b.begin()
	tx.Set(b.key("a"), []byte("v"))
	_, err := tx.Commit(ctx)
	if err != nil {
		require.ErrorIs(b, err, kv.ErrUnknownResult)
		require.ErrorIs(b, err, context.Canceled)
	}
	b.requireUsed(tx)
}
