package workers

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
)

// TestSnoozedFunctionRunsAgain is asked for five times and has one attempt.
func TestSnoozedFunctionRunsAgain(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	var runs, failures atomic.Int64
	b.start(Options{Slots: 1, OnAttemptFailed: func(Failure) { failures.Add(1) }}, map[string]Function{
		"later": func(ctx context.Context, _ []byte) ([]byte, error) {
			info, _ := InfoFrom(ctx)
			if runs.Add(1) < 5 {
				return nil, fmt.Errorf("not yet: %w", Snooze(time.Second))
			}
			return fmt.Append(nil, info.Attempt), nil
		}})
	id := b.one("go:later")
	from := b.clock.Now()
	b.awaitOver(id)
	row := b.row(id)
	require.Equal(t, layout.Realized, row.State())
	require.Equal(t, "1", string(row.Result.Value))
	require.Equal(t, 4, row.Attempts.Snoozed)
	require.GreaterOrEqual(t, b.clock.Now().Sub(from), 4*time.Second)
	require.Zero(t, failures.Load())
}

// TestFunctionEndsAtTheDeadline has one that heeds its context and one that doesn't.
func TestFunctionEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	heeds, ignores := newBlocker(true), newBlocker(false)
	causes := make(chan error, 1)
	w := b.start(Options{Slots: 2}, map[string]Function{
		"heeds": func(ctx context.Context, args []byte) ([]byte, error) {
			deadline, _ := ctx.Deadline()
			out, err := heeds.run(ctx, args)
			causes <- fmt.Errorf("%w at %s", context.Cause(ctx), deadline.UTC())
			return out, err
		},
		"ignores": ignores.run,
	})
	at := b.clock.Now().Add(3 * time.Second)
	bound := func(s *fdbmodel.Submission) {
		s.Spec.Deadline, s.Spec.Timeout, s.Spec.MaxRetries = layout.Millis(at), time.Hour, 5
	}
	ids := []layout.ID{b.one("go:heeds", bound), b.one("go:ignores", bound)}
	b.awaitOver(ids...)
	for _, id := range ids {
		e := b.row(id).Exception
		require.Equal(t, layout.KindDeadline, e.Kind)
		require.Equal(t, 1, e.Attempt, "it is for good")
	}
	cause := <-causes
	require.ErrorIs(t, cause, ErrDeadline)
	require.ErrorIs(t, cause, context.DeadlineExceeded)
	require.ErrorContains(t, cause, at.UTC().String())
	require.False(t, b.clock.Now().Before(at))
	close(ignores.end)
	w.end()
}

// TestClaimedAheadAndExpired has a future wait for a slot of its worker for too long: it
// does not begin.
func TestClaimedAheadAndExpired(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	work := newBlocker(false)
	failed := make(chan Failure, 2)
	b.start(Options{Slots: 1, OnFailed: func(f Failure) { failed <- f }},
		map[string]Function{"work": work.run})
	first := b.one("go:work")
	b.begins(work)
	late := b.one("go:work", func(s *fdbmodel.Submission) { s.Spec.ExpiresAt = layout.Millis(b.clock.Now()) + 2000 })
	b.await("the time of the second", func() bool { return layout.Millis(b.clock.Now()) > b.row(late).Spec.ExpiresAt })
	close(work.end)
	b.awaitOver(first, late)
	require.Equal(t, layout.KindExpired, b.row(late).Exception.Kind)
	f := <-failed
	require.Equal(t, late, f.ID)
	require.Equal(t, layout.KindExpired, f.Kind)
	require.Empty(t, work.began)
}

// TestDeadlineOfAModule becomes its timeout.
func TestDeadlineOfAModule(t *testing.T) {
	t.Parallel()
	b := virtualBed(t)
	info, err := modules.Of(b.cluster).Put(b.ctx, []byte("a module, as far as its runner knows"), "")
	require.NoError(t, err)
	calls := make(chan time.Duration, 1)
	b.start(Options{Slots: 1, Modules: moduleFunc(func(_ context.Context, call ModuleCall) (ModuleOutcome, error) {
		calls <- call.Timeout
		return ModuleOutcome{Kind: layout.KindTimeout, Message: "ran too long"}, nil
	})}, nil)
	id := b.one("wasm:"+info.CID, func(s *fdbmodel.Submission) {
		s.Spec.Deadline, s.Spec.MaxRetries = layout.Millis(b.clock.Now().Add(time.Minute)), 5
	})
	b.awaitOver(id)
	require.LessOrEqual(t, <-calls, time.Minute)
	require.Equal(t, layout.KindDeadline, b.row(id).Exception.Kind)
}
