package kv_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// script is a store whose commits return the given errors in turn, and then
// succeed.
type script struct {
	kv.Database
	commits []error
	begun   []kv.Options
	open    int
}

func (s *script) Begin(o kv.Options) kv.Tx {
	s.begun = append(s.begun, o)
	s.open++
	return &scriptTx{script: s}
}

type scriptTx struct {
	kv.Tx
	script *script
	ended  bool
}

func (t *scriptTx) Commit(context.Context) (kv.Committed, error) {
	if len(t.script.commits) == 0 {
		return kv.Committed{Version: kv.Version(len(t.script.begun))}, nil
	}
	err := t.script.commits[0]
	t.script.commits = t.script.commits[1:]
	return kv.Committed{Version: 99}, err
}

func (t *scriptTx) Cancel() {
	if !t.ended {
		t.ended = true
		t.script.open--
	}
}

// waits returns a Retry that records its waits.
func waits(into *[]time.Duration) kv.Retry {
	return kv.Retry{
		Random: func() float64 { return 1 },
		Sleep: func(ctx context.Context, d time.Duration) error {
			*into = append(*into, d)
			return ctx.Err()
		},
	}
}

func nothing(kv.Attempt) error { return nil }

func TestTransactRunsAgain(t *testing.T) {
	t.Parallel()
	db := &script{commits: []error{
		kv.ErrConflict, fmt.Errorf("wrapped: %w", kv.ErrTooOld), kv.ErrUnknownResult, kv.ErrConflict, kv.ErrUnavailable,
	}}
	var slept []time.Duration
	retry := waits(&slept)
	retry.Options = kv.Options{NoSync: true, Tag: "tag"}
	var seen []string
	result, err := kv.Transact(t.Context(), db, retry, func(a kv.Attempt) error {
		require.NotNil(t, a.Tx)
		require.Equal(t, 1, db.open, "the last transaction has ended")
		seen = append(seen, fmt.Sprint(a.Number, a.MaybeCommitted))
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, kv.Result{Committed: kv.Committed{Version: 6}, Attempts: 6, Conflicts: 2}, result)
	require.Equal(t, []string{"1 false", "2 false", "3 false", "4 true", "5 true", "6 true"}, seen)
	require.Zero(t, db.open)
	for _, o := range db.begun {
		require.Equal(t, retry.Options, o)
	}
	ms := time.Millisecond
	require.Equal(t, []time.Duration{10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms}, slept)
}

// TestTransactIsPatient with a store that can only be read for a while, if it is asked to be. It still knows what may
// have been committed before that.
func TestTransactIsPatient(t *testing.T) {
	t.Parallel()
	commits := func() *script {
		return &script{commits: []error{kv.ErrReadOnly, kv.ErrUnknownResult, kv.ErrReadOnly, kv.ErrClosed}}
	}
	var slept []time.Duration
	retry := waits(&slept)
	result, err := kv.Transact(t.Context(), commits(), retry, nothing)
	require.ErrorIs(t, err, kv.ErrReadOnly)
	require.NotErrorIs(t, err, kv.ErrUnknownResult)
	require.Equal(t, 1, result.Attempts)
	retry.Patient = true
	var maybe []bool
	_, err = kv.Transact(t.Context(), commits(), retry, func(a kv.Attempt) error {
		maybe = append(maybe, a.MaybeCommitted)
		return nil
	})
	require.ErrorIs(t, err, kv.ErrClosed)
	require.ErrorIs(t, err, kv.ErrUnknownResult)
	require.Equal(t, []bool{false, false, true, true}, maybe)
	require.Len(t, slept, 3)
}

// TestTransactSaysThatTheStoreWasAway when its time is up, while it waits or tries, and nothing of an outage before.
func TestTransactSaysThatTheStoreWasAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		commits []error
		away    bool
	}{
		"waiting": {[]error{kv.ErrUnavailable}, true},
		"trying":  {[]error{kv.ErrUnavailable, context.DeadlineExceeded}, true},
		"before":  {[]error{kv.ErrUnavailable, kv.ErrTooOld, context.DeadlineExceeded}, false},
		"never":   {[]error{context.DeadlineExceeded}, false},
	} {
		db := &script{commits: c.commits}
		last := len(c.commits)
		retry := kv.Retry{Sleep: func(context.Context, time.Duration) error {
			if len(db.begun) == last {
				return context.DeadlineExceeded
			}
			return nil
		}}
		_, err := kv.Transact(t.Context(), db, retry, nothing)
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
		require.Equal(t, c.away, errors.Is(err, kv.ErrUnavailable), name)
	}
}

func TestTransactWaitsNoLongerThanASecond(t *testing.T) {
	t.Parallel()
	db := &script{}
	for range 80 {
		db.commits = append(db.commits, kv.ErrUnavailable)
	}
	var slept []time.Duration
	_, err := kv.Transact(t.Context(), db, waits(&slept), nothing)
	require.NoError(t, err)
	require.Len(t, slept, 80)
	for i, d := range slept {
		require.Positive(t, d)
		require.LessOrEqual(t, d, time.Second)
		require.True(t, i == 0 || d >= slept[i-1])
	}
	require.Equal(t, time.Second, slept[79])
}

func TestTransactEndsWithOtherErrors(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	db := &script{}
	result, err := kv.Transact(t.Context(), db, kv.Retry{}, func(kv.Attempt) error { return refused })
	require.Equal(t, refused, err)
	require.Equal(t, kv.Result{Committed: kv.Committed{Version: kv.NoVersion}, Attempts: 1}, result)
	require.Zero(t, db.open)

	db = &script{commits: []error{kv.ErrTxTooLarge}}
	_, err = kv.Transact(t.Context(), db, kv.Retry{}, nothing)
	require.Equal(t, kv.ErrTxTooLarge, err)
	require.Zero(t, db.open)
}

func TestTransactKeepsTheDoubt(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	var slept []time.Duration
	db := &script{commits: []error{kv.ErrUnknownResult}}
	_, err := kv.Transact(t.Context(), db, waits(&slept), func(a kv.Attempt) error {
		if a.MaybeCommitted {
			return refused
		}
		return nil
	})
	require.ErrorIs(t, err, kv.ErrUnknownResult)
	require.ErrorIs(t, err, refused)

	db = &script{commits: []error{kv.ErrUnknownResult, kv.ErrConflict}}
	retry := waits(&slept)
	retry.MaxAttempts = 2
	_, err = kv.Transact(t.Context(), db, retry, nothing)
	require.ErrorIs(t, err, kv.ErrUnknownResult)
	require.ErrorIs(t, err, kv.ErrConflict)
	require.ErrorContains(t, err, "gave up after 2 attempts")
}

func TestTransactCancelsOnPanic(t *testing.T) {
	t.Parallel()
	db := &script{}
	require.PanicsWithValue(t, "stop", func() {
		_, _ = kv.Transact(t.Context(), db, kv.Retry{}, func(kv.Attempt) error { panic("stop") })
	})
	require.Zero(t, db.open)
	require.Len(t, db.begun, 1)
}

func TestTransactEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	db := &script{commits: []error{kv.ErrUnknownResult, kv.ErrConflict, kv.ErrConflict}}
	var slept []time.Duration
	result, err := kv.Transact(ctx, db, waits(&slept), func(a kv.Attempt) error {
		if a.Number == 2 {
			cancel()
		}
		return nil
	})
	require.ErrorIs(t, err, kv.ErrUnknownResult)
	require.ErrorIs(t, err, kv.ErrConflict)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 2, result.Attempts)

	_, err = kv.Transact(ctx, db, kv.Retry{}, func(kv.Attempt) error {
		require.Fail(t, "nothing runs after the context has ended")
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, kv.ErrUnknownResult)
}

func TestTransactEndsWhileItWaits(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	db := &script{commits: []error{kv.ErrUnavailable}}
	_, err := kv.Transact(ctx, db, kv.Retry{Random: func() float64 {
		cancel()
		return 1
	}}, nothing)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, db.begun, 1)
}

// patient is a store that knows when to retry.
type patient struct {
	*script
	waited []kv.Tx
	err    error
}

func (p *patient) Traits() kv.Traits { return kv.Traits{WaitConflict: p.waitConflict} }

func (p *patient) waitConflict(_ context.Context, tx kv.Tx) error {
	p.waited = append(p.waited, tx)
	return p.err
}

func TestTransactAsksTheStoreWhenToRunAgain(t *testing.T) {
	t.Parallel()
	db := &patient{script: &script{commits: []error{kv.ErrConflict, kv.ErrUnavailable}}}
	var slept []time.Duration
	var first kv.Tx
	_, err := kv.Transact(t.Context(), db, waits(&slept), func(a kv.Attempt) error {
		if first == nil {
			first = a.Tx
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []kv.Tx{first}, db.waited)
	require.Len(t, slept, 1, "only a conflict is the store's to wait for")

	db = &patient{script: &script{commits: []error{kv.ErrConflict}}, err: kv.ErrClosed}
	_, err = kv.Transact(t.Context(), db, waits(&slept), nothing)
	require.ErrorIs(t, err, kv.ErrClosed)
}

// TestTagsAreShort refuses on every store what one of them can't take.
func TestTagsAreShort(t *testing.T) {
	t.Parallel()
	db := &script{}
	run := func(tag string) error {
		_, err := kv.Transact(t.Context(), db, kv.Retry{Options: kv.Options{Tag: tag}}, func(kv.Attempt) error { return nil })
		return err
	}
	require.NoError(t, run("futura-sixteen-b"))
	require.ErrorContains(t, run("futura-seventeen-"), "17 bytes, at most 16")
	require.Len(t, db.begun, 1)
}
