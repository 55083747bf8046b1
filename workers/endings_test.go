package workers

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
)

// TestCompletionsThatWereNotWritten returns part of a batch: it goes before what
// has ended since.
func TestCompletionsThatWereNotWritten(t *testing.T) {
	t.Parallel()
	m := &membership{endings: newEndings()}
	futures := make([]fdbmodel.ClaimedFuture, 3)
	for i := range futures[:2] {
		m.put(fdbmodel.Completion{Future: &futures[i]})
	}
	batch := m.endings.await()
	require.Len(t, batch, 2)
	m.put(fdbmodel.Completion{Future: &futures[2]})
	require.Equal(t, 2, m.endings.open())
	m.endings.done(batch[1:])
	require.Equal(t, 2, m.endings.backlog())
	again := m.endings.await()
	require.Same(t, &futures[1], again[0].Future)
	require.Same(t, &futures[2], again[1].Future)
	m.endings.done(nil)
	require.Zero(t, m.endings.open())
}

// TestCancelThatComesBeforeItsClaim hears of a cancel while the claim that takes
// the future is under way.
func TestCancelThatComesBeforeItsClaim(t *testing.T) {
	t.Parallel()
	s := newSlots(clock.Real{}, layout.Resources{Slots: 2}, time.Minute, 1)
	require.Positive(t, s.request(nil).Max)
	cancelled, other := layout.ID{1}, layout.ID{2}
	require.Nil(t, s.cancel(cancelled))
	claimed := []fdbmodel.ClaimedFuture{{ID: cancelled, Spec: &layout.Spec{}}, {ID: other, Spec: &layout.Spec{}}}
	unwanted := s.admit(&membership{}, claimed, false)
	require.Len(t, unwanted, 1)
	require.Equal(t, cancelled, unwanted[0].future.ID)
	require.Len(t, s.queue, 1)
	require.Empty(t, s.admit(&membership{}, claimed[:1], false), "a cancel is of the claim that was under way")
}

// TestErrorsAfterAStop has a function return an error because it was stopped,
// and panic while it stops: only the panic is its own fault.
func TestErrorsAfterAStop(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{ErrStopping, ErrCancelled, fdbmodel.ErrReaped} {
		ctx, cancel := context.WithCancelCause(context.Background())
		j := &job{ctx: ctx, cancel: cancel, membership: &membership{worker: &Worker{}}}
		require.False(t, j.failure(errors.New("no")).Relinquish)
		cancel(cause)
		stopped := j.failure(errors.New("the context ended"))
		require.True(t, stopped.Relinquish)
		require.Nil(t, stopped.Exception)
		require.Equal(t, layout.KindPanic, j.failure(&panicError{"panic"}).Exception.Kind)
	}
}
