package ferrettest

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

// retry retries what has failed for good.
func (s *scene) retry() error {
	_, err := s.s.Retry(s.Context(), s.id)
	return err
}

// retryOne is retry where one item has.
func (s *scene) retryOne() {
	s.Helper()
	n, err := s.s.Retry(s.Context(), s.id)
	require.NoError(s, err)
	require.Equal(s, 1, n)
}

// newFailedScene is a scene of a batch of three items that are over, of which the
// second has failed for good.
func newFailedScene(t *testing.T) *scene {
	s := newScene(t)
	s.begin(3)
	require.NoError(t, s.finish())
	return s
}

// meanwhile makes a call, and holds its first command of a kind on a collection
// until another call has ended.
func (s *scene) meanwhile(name, collection string, slow func() error, other func()) error {
	s.Helper()
	return s.meanwhileAt(1, name, collection, slow, other)
}

// meanwhileAt is meanwhile with the n-th such command.
func (s *scene) meanwhileAt(n int, name, collection string, slow func() error, other func()) error {
	s.Helper()
	held, release := make(chan struct{}), make(chan struct{})
	s.proxy.set(func(p *proxy) {
		p.hold = func(c *command) <-chan struct{} {
			if c.name != name || c.body.Lookup(name).StringValue() != collection {
				return nil
			}
			if n--; n > 0 {
				return nil
			}
			p.hold = nil
			close(held)
			return release
		}
	})
	ended := make(chan error, 1)
	go func() { ended <- slow() }()
	select {
	case <-held:
	case err := <-ended:
		require.Fail(s, "the call ended without such a command", "%v", err)
	case <-time.After(time.Minute):
		require.Fail(s, "the call has no such command")
	}
	other()
	close(release)
	return <-ended
}

const (
	batchesOf = "b7s-batches"
	chunksOf  = "b7s-batch-chunks"
	itemsOf   = "b7s-batch-work-items"
)

func TestCancelWhileAnAttemptIsReported(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.begin(2)
	require.NoError(t, s.assign(0, 1))
	require.NoError(t, s.meanwhile("update", itemsOf, func() error { return s.complete(0, 1) }, func() {
		require.NoError(t, s.cancel())
		s.require(batch.PermanentlyFailed, batch.InProgress, batch.InProgress)
	}))
	items := s.require(batch.PermanentlyFailed, batch.Done, batch.PermanentlyFailed)
	require.Equal(t, "enough", items[1].Reason)
}

func TestCancelWhileAChunkIsReleased(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.begin(1)
	require.NoError(t, s.assign(0))
	require.NoError(t, s.meanwhile("update", itemsOf, func() error {
		_, err := s.s.Release(t.Context(), s.id, s.chunk().ID)
		return err
	}, func() { require.NoError(t, s.cancel()) }))
	s.require(batch.PermanentlyFailed, batch.PermanentlyFailed)
}

func TestCancelWhileItemsAreAssigned(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.begin(2)
	require.NoError(t, s.meanwhile("update", itemsOf, func() error {
		given, err := s.s.Assign(t.Context(), s.chunk(), []int{0, 1})
		require.Empty(t, given)
		return err
	}, func() { require.NoError(t, s.cancel()) }))
	s.require(batch.PermanentlyFailed, batch.PermanentlyFailed, batch.PermanentlyFailed)
	chunks, err := s.s.Chunks(t.Context(), s.id)
	require.NoError(t, err)
	require.Empty(t, chunks)
}

func TestRetryWhileABatchIsSettled(t *testing.T) {
	t.Parallel()
	s := newFailedScene(t)
	require.NoError(t, s.meanwhile("update", batchesOf, s.settle, s.retryOne))
	s.require(batch.InProgress, batch.Done, batch.Created, batch.Done)
}

func TestSettleWhileABatchIsRetried(t *testing.T) {
	t.Parallel()
	s := newFailedScene(t)
	require.NoError(t, s.settle())
	require.NoError(t, s.meanwhile("update", itemsOf, s.retry, func() {
		require.NoError(t, s.settle())
		s.require(batch.Done, batch.Done, batch.PermanentlyFailed, batch.Done)
	}))
	s.require(batch.InProgress, batch.Done, batch.Created, batch.Done)
}

func TestRetryWhileABatchIsCancelled(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.begin(3)
	require.NoError(t, s.assign(0, 1))
	require.NoError(t, s.complete(0, 1))
	require.NoError(t, s.assign(1))
	require.NoError(t, s.complete(1))
	// The cancel has found the third item, which waits; the second is retried.
	require.NoError(t, s.meanwhile("update", itemsOf, s.cancel, s.retryOne))
	s.require(batch.InProgress, batch.Done, batch.Created, batch.PermanentlyFailed)
}

func TestCancelWhileABatchIsRetried(t *testing.T) {
	t.Parallel()
	s := newFailedScene(t)
	require.NoError(t, s.settle())
	require.NoError(t, s.meanwhile("update", itemsOf, s.retry, func() { require.NoError(t, s.cancel()) }))
	s.require(batch.PermanentlyFailed, batch.Done, batch.PermanentlyFailed, batch.Done)
}

// TestRetryDoesNotRetryTwice lets an item fail for good again while the retry
// still looks for more.
func TestRetryDoesNotRetryTwice(t *testing.T) {
	t.Parallel()
	s := newFailedScene(t)
	require.NoError(t, s.settle())
	require.NoError(t, s.meanwhileAt(2, "find", itemsOf, func() error {
		n, err := s.s.Retry(t.Context(), s.id)
		require.Equal(t, 1, n)
		return err
	}, func() {
		for range 2 {
			require.NoError(t, s.assign(1))
			require.NoError(t, s.complete(1))
		}
	}))
	s.require(batch.InProgress, batch.Done, batch.PermanentlyFailed, batch.Done)
	require.NoError(t, s.settle())
	s.require(batch.Done, batch.Done, batch.PermanentlyFailed, batch.Done)
}

func TestAssignMoreWhileAChunkIsSettled(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.begin(3)
	require.NoError(t, s.assign(0))
	require.NoError(t, s.complete(0))
	require.NoError(t, s.meanwhile("update", chunksOf, s.settle, func() { require.NoError(t, s.assign(1, 2)) }))
	s.requireChunk(batch.InProgress, 3)
	s.require(batch.InProgress, batch.Done, batch.InProgress, batch.InProgress)
}

func TestSweepWhileABatchIsCreated(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, at := range []struct{ name, collection string }{{"insert", itemsOf}, {"update", batchesOf}} {
		s.id = uuid.NewString()
		err := s.meanwhile(at.name, at.collection, func() error { return s.create(3) }, func() {
			require.NoError(t, s.s.Sweep(t.Context(), s.now.Add(time.Hour), 2*time.Hour))
			require.ErrorIs(t, s.create(1), batch.ErrExists, "it is too young to be swept")
			require.NoError(t, s.s.Sweep(t.Context(), s.now.Add(time.Hour), time.Minute))
		})
		require.ErrorContains(t, err, "a sweep removed it")
		_, err = s.s.Get(t.Context(), s.id)
		require.ErrorIs(t, err, batch.ErrNotFound)
		s.requireGone()
	}
}

// TestReportsOfOneItem holds a report while another ends the item.
func TestReportsOfOneItem(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.begin(3)
	require.NoError(t, s.assign(0, 1, 2))
	report := func(stdout string, items ...int) []bool {
		var ended []batch.Completion
		for _, i := range items {
			ended = append(ended, batch.Completion{Index: i, Result: batch.Result{Stdout: stdout}})
		}
		counted, err := s.s.Complete(t.Context(), s.id, s.chunk().ID, ended)
		require.NoError(t, err)
		return counted
	}
	var late []bool
	require.NoError(t, s.meanwhile("update", itemsOf, func() error {
		late = report("late", 0, 1, 2)
		return nil
	}, func() { require.Equal(t, []bool{true}, report("first", 1)) }))
	require.Equal(t, []bool{true, false, true}, late)
	items := s.require(batch.InProgress, batch.Done, batch.Done, batch.Done)
	require.Equal(t, "first", items[1].Result.Stdout)
	require.Equal(t, "late", items[2].Result.Stdout)
}

// TestReportOfAnEarlierAttempt holds a report while another makes the item fail
// and the same chunk is given it again.
func TestReportOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.begin(1)
	require.NoError(t, s.assign(0))
	report := func(end batch.Completion) []bool {
		counted, err := s.s.Complete(t.Context(), s.id, s.chunk().ID, []batch.Completion{end})
		require.NoError(t, err)
		return counted
	}
	var late []bool
	require.NoError(t, s.meanwhile("update", itemsOf, func() error {
		late = report(batch.Completion{Result: batch.Result{Stdout: "late"}})
		return nil
	}, func() {
		require.Equal(t, []bool{true}, report(batch.Completion{Failed: true, Reason: "timed out"}))
		require.NoError(t, s.assign(0))
	}))
	require.Equal(t, []bool{false}, late)
	items := s.require(batch.InProgress, batch.InProgress)
	require.Equal(t, 1, items[0].Attempts)
	require.Empty(t, items[0].Result.Stdout)
}
