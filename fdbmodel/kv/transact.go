package kv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Attempt is one run of a function inside Transact.
type Attempt struct {
	Tx
	// Number counts the runs from 1.
	Number int
	// MaybeCommitted is set when an earlier run ended with an unknown result,
	// so its writes may exist already or may yet appear.
	MaybeCommitted bool

	local *Local
}

// Local returns what is remembered of the attempt, nil for one that Transact did not make.
func (a Attempt) Local() *Local { return a.local }

// Result describes how a Transact ended.
type Result struct {
	Committed
	// Attempts is the number of runs, at least 1.
	Attempts int
	// Conflicts is the number of runs that ended in ErrConflict.
	Conflicts int
}

// Retry says how Transact retries. The zero value retries until the context
// ends, which is right for every context that does end.
type Retry struct {
	Options

	// MaxAttempts bounds the runs. Defaults to no bound.
	MaxAttempts int
	// Patient repeats after ErrReadOnly too: a store that has no room on its disk
	// goes on once there is some. Defaults to false.
	Patient bool
	// Sleep waits between two runs. It returns ctx's error if that ends first.
	// Defaults to a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// Random returns a number in [0,1) that spreads the waits. Defaults to a
	// process-wide random source.
	Random func() float64
}

// Waits between runs. They are FoundationDB's: 10 ms, doubled up to a second.
const (
	retryWaitMin = 10 * time.Millisecond
	retryWaitMax = time.Second
)

// Transact runs fn in a transaction and commits it. It repeats both after an
// error that is Retryable, or that Retry.Patient waits for, whether fn or the commit returned it. Any other
// error of fn ends Transact: nothing is written and the error is returned. An attempt that Fail was called
// for ends with that error. A
// panic in fn cancels the transaction and propagates. fn may run more than
// once; it must reset its results in each run, draw no ids, and neither commit
// nor cancel the transaction itself.
//
// When ctx ends, its error is returned, with ErrUnavailable if the store was unavailable when its time was up. When
// MaxAttempts is reached, the last error is returned. If it is ErrUnknownResult, the writes may have happened.
func Transact(ctx context.Context, db Database, retry Retry, fn func(Attempt) error) (Result, error) {
	result := Result{Committed: Committed{Version: NoVersion}}
	if tag := retry.Options.Tag; len(tag) > MaxTag {
		return result, fmt.Errorf("tag %q of a transaction: %d bytes, at most %d", tag, len(tag), MaxTag)
	}
	maybe, local := false, &Local{}
	var away error // of the last attempt, if the store was unavailable
	for {
		if err := ctx.Err(); err != nil {
			return result, unknownIf(maybe, whileAway(away, err))
		}
		result.Attempts++
		tx := db.Begin(retry.Options)
		*local = Local{}
		committed, err := runOnce(ctx, tx, fn, Attempt{tx, result.Attempts, maybe, local})
		if err == nil {
			result.Committed = committed
			return result, nil
		}
		maybe = maybe || MaybeCommitted(err)
		if errors.Is(err, ErrConflict) {
			result.Conflicts++
		} else {
			tellOf(ctx, err)
		}
		again := Retryable(err) || retry.Patient && errors.Is(err, ErrReadOnly)
		if ended := ctx.Err(); !again || ended != nil {
			if err = whileAway(away, err); again && !errors.Is(err, ended) {
				err = fmt.Errorf("%w: %w", err, ended)
			}
			return result, unknownIf(maybe, err)
		}
		if away = nil; errors.Is(err, ErrUnavailable) {
			away = err
		}
		if retry.MaxAttempts > 0 && result.Attempts >= retry.MaxAttempts {
			return result, unknownIf(maybe, fmt.Errorf("kv: gave up after %d attempts: %w", result.Attempts, err))
		}
		if err := retry.wait(ctx, db, tx, err, result.Attempts); err != nil {
			return result, unknownIf(maybe, whileAway(away, err))
		}
	}
}

// runOnce cancels tx on every way out but a commit, including a panic in fn.
func runOnce(ctx context.Context, tx Tx, fn func(Attempt) error, a Attempt) (Committed, error) {
	defer tx.Cancel()
	if err := fn(a); err != nil {
		return Committed{}, err
	}
	if err := a.local.failed; err != nil {
		return Committed{}, err
	}
	return tx.Commit(ctx)
}

func (r Retry) wait(ctx context.Context, db Database, tx Tx, cause error, attempts int) error {
	if errors.Is(cause, ErrConflict) {
		if wait := TraitsOf(db).WaitConflict; wait != nil {
			return wait(ctx, tx)
		}
	}
	random, sleep := r.Random, r.Sleep
	if random == nil {
		random = rand.Float64
	}
	if sleep == nil {
		sleep = sleepTimer
	}
	limit := retryWaitMin << min(attempts-1, 10)
	return sleep(ctx, time.Duration(random()*float64(min(limit, retryWaitMax))))
}

func sleepTimer(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// whileAway says that the store was unavailable when the time for a transaction was up.
func whileAway(away, err error) error {
	if away == nil || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", away, err)
}

// unknownIf marks the error of a later attempt as unknown if an earlier attempt
// may have committed.
func unknownIf(maybe bool, err error) error {
	if maybe && !errors.Is(err, ErrUnknownResult) {
		return fmt.Errorf("%w: %w", ErrUnknownResult, err)
	}
	return err
}
