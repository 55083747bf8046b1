package grouping_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/grouping"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/workers"
)

// attempt is a call that waits until the test says how it ends.
type attempt struct {
	ctx   context.Context
	tasks []grouping.Task[order]
	ends  chan error
}

// cancels is a cluster whose calls the test ends.
type cancels struct {
	*testing.T
	client *futures.Client
	calls  chan *attempt
}

func newCancels(t *testing.T, h grouping.Handler[order, int]) *cancels {
	s := &cancels{T: t, calls: make(chan *attempt, 10)}
	shop := newShopOf(t, h, func(ctx context.Context, _ string, tasks []grouping.Task[order],
	) ([]grouping.Outcome[int], error) {
		a := &attempt{ctx, tasks, make(chan error, 1)}
		s.calls <- a
		var err error
		select {
		case err = <-a.ends:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		outcomes := make([]grouping.Outcome[int], len(tasks))
		for i, task := range tasks {
			outcomes[i] = grouping.Outcome[int]{Out: task.In.N, Err: errors.Join(err, task.Context().Err())}
		}
		return outcomes, nil
	})
	s.client = shop.client
	return s
}

// submit submits tasks of one target, and returns them.
func (s *cancels) submit(n int, o ...futures.Option) []*futures.Typed[int] {
	var in []order
	for i := range n {
		in = append(in, order{"t", i})
	}
	got, err := handler(grouping.Settings{}, o...).SubmitAll(s.Context(), s.client, in)
	require.NoError(s, err)
	return got
}

func (s *cancels) cancel(f *futures.Typed[int]) {
	_, err := s.client.Cancel(s.Context(), f.ID(), "not wanted")
	require.NoError(s, err)
}

// kinds returns how tasks failed, empty for those with a result.
func (s *cancels) kinds(tasks []*futures.Typed[int]) (kinds []futures.FailureKind) {
	for _, f := range tasks {
		_, err := f.Await(s.Context())
		var failed *futures.FailedError
		if errors.As(err, &failed) {
			kinds = append(kinds, failed.Kind)
			continue
		}
		require.NoError(s, err)
		kinds = append(kinds, "")
	}
	return kinds
}

func TestOneTaskOfACallIsCancelled(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := newCancels(t, handler(grouping.Settings{}))
		tasks := s.submit(3)
		call := <-s.calls
		require.Len(t, call.tasks, 3)
		s.cancel(tasks[1])
		<-call.tasks[1].Context().Done()
		require.ErrorIs(t, context.Cause(call.tasks[1].Context()), workers.ErrCancelled)
		synctest.Wait()
		for _, wanted := range []context.Context{call.ctx, call.tasks[0].Context(), call.tasks[2].Context()} {
			require.NoError(t, wanted.Err())
		}
		call.ends <- nil
		require.Equal(t, []futures.FailureKind{"", layout.KindCancelled, ""}, s.kinds(tasks))
	})
}

// TestAllTasksOfACallAreCancelled ends the call, and the next tasks of the target run.
func TestAllTasksOfACallAreCancelled(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := newCancels(t, handler(grouping.Settings{}))
		tasks := s.submit(3)
		call := <-s.calls
		next := s.submit(2)
		for _, f := range tasks[1:] {
			s.cancel(f)
		}
		<-call.tasks[1].Context().Done()
		<-call.tasks[2].Context().Done()
		synctest.Wait()
		require.NoError(t, call.ctx.Err())
		s.cancel(tasks[0])
		<-call.ctx.Done()
		require.ErrorIs(t, context.Cause(call.ctx), workers.ErrCancelled)
		const over = layout.KindCancelled
		require.Equal(t, []futures.FailureKind{over, over, over}, s.kinds(tasks))
		call = <-s.calls
		require.Len(t, call.tasks, 2)
		call.ends <- nil
		require.Equal(t, []futures.FailureKind{"", ""}, s.kinds(next))
	})
}

// TestCancelWhileTasksAreRetriedInPlace leaves the cancelled one out of the next try.
func TestCancelWhileTasksAreRetriedInPlace(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := newCancels(t, handler(grouping.Settings{InPlace: 2, InPlaceWait: time.Minute}))
		tasks := s.submit(3)
		call := <-s.calls
		call.ends <- errors.New("busy")
		synctest.Wait()
		s.cancel(tasks[0])
		call = <-s.calls
		require.Len(t, call.tasks, 2)
		require.EqualValues(t, tasks[1].ID(), call.tasks[0].ID)
		s.cancel(tasks[1])
		<-call.tasks[0].Context().Done()
		call.ends <- errors.New("busy")
		call = <-s.calls
		require.Len(t, call.tasks, 1)
		require.EqualValues(t, tasks[2].ID(), call.tasks[0].ID)
		call.ends <- nil
		require.Equal(t, []futures.FailureKind{layout.KindCancelled, layout.KindCancelled, ""}, s.kinds(tasks))
	})
}

// TestCancelledTasksOfACallThatTimesOut are cancelled, and the others are tried again.
func TestCancelledTasksOfACallThatTimesOut(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := newCancels(t, handler(grouping.Settings{}))
		tasks := s.submit(2, futures.Timeout(time.Minute), futures.Retries(1))
		call := <-s.calls
		s.cancel(tasks[0])
		<-call.tasks[0].Context().Done()
		<-call.ctx.Done()
		require.ErrorIs(t, context.Cause(call.ctx), workers.ErrTimeout)
		call = <-s.calls
		require.Len(t, call.tasks, 1)
		require.Equal(t, 2, call.tasks[0].Attempt)
		<-call.ctx.Done()
		require.Equal(t, []futures.FailureKind{layout.KindCancelled, layout.KindTimeout}, s.kinds(tasks))
	})
}

// TestCancelWhileACallLingers leaves the task out of the call.
func TestCancelWhileACallLingers(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := newCancels(t, handler(grouping.Settings{Linger: time.Minute}))
		tasks := s.submit(3)
		synctest.Wait()
		s.cancel(tasks[1])
		call := <-s.calls
		require.Len(t, call.tasks, 2)
		require.EqualValues(t, tasks[2].ID(), call.tasks[1].ID)
		call.ends <- nil
		require.Equal(t, []futures.FailureKind{"", layout.KindCancelled, ""}, s.kinds(tasks))
		tasks = s.submit(2)
		synctest.Wait()
		s.cancel(tasks[0])
		s.cancel(tasks[1])
		require.Equal(t, []futures.FailureKind{layout.KindCancelled, layout.KindCancelled}, s.kinds(tasks))
		require.Empty(t, s.calls, "without a task there is no call")
		last := s.submit(1)
		(<-s.calls).ends <- nil
		require.Equal(t, []futures.FailureKind{""}, s.kinds(last))
	})
}

// TestDeadlinesOfTasks end each task by itself, and the call with the last one.
func TestDeadlinesOfTasks(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := newCancels(t, handler(grouping.Settings{}))
		in := []order{{"t", 0}, {"t", 1}}
		var all []futures.Task
		for i, o := range in {
			task, err := futures.Define[order, int]("order").InLane("order", func(o order) string { return o.Target }).
				Task(o, futures.Deadline(time.Now().Add(time.Duration(1+i)*time.Minute)), futures.Retries(5))
			require.NoError(t, err)
			all = append(all, task)
		}
		got, err := s.client.SubmitMany(t.Context(), all)
		require.NoError(t, err)
		call := <-s.calls
		require.Len(t, call.tasks, 2)
		<-call.tasks[0].Context().Done()
		require.ErrorIs(t, context.Cause(call.tasks[0].Context()), workers.ErrDeadline)
		require.NoError(t, call.ctx.Err())
		<-call.ctx.Done()
		for _, f := range got {
			_, err := f.Await(t.Context())
			var failed *futures.FailedError
			require.ErrorAs(t, err, &failed)
			require.EqualValues(t, layout.KindDeadline, failed.Kind)
		}
	})
}
