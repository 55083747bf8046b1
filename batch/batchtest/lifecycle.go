package batchtest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

func testRelease(f *fixture) {
	id := f.create(2, lists(4))
	lost := f.assign(id, "w1", 0, 1, 2)
	require.Equal(f, 3, f.release(lost))
	require.Equal(f, batch.Failed, f.chunk(lost).Status)
	f.requireProgress(id, batch.Progress{batch.Created: 4})
	waiting, _ := f.waiting(id, f.now)
	require.Equal(f, indexes(0, 4), waiting)
	for _, item := range f.items(id) {
		require.Zero(f, item.Attempts)
		require.Empty(f, item.FailedOn)
	}
	require.Zero(f, f.release(lost))

	// The items of another chunk stay, and a chunk that is done stays done.
	c := f.assign(id, "w2", 0, 1)
	require.Zero(f, f.release(lost))
	f.end(c, f.succeeds(0), f.succeeds(1))
	f.settle(id)
	require.Equal(f, batch.Done, f.chunk(c).Status)
	require.Zero(f, f.release(c))
	require.Equal(f, batch.Done, f.chunk(c).Status)
	require.Equal(f, batch.Failed, f.chunk(lost).Status)
	f.requireProgress(id, batch.Progress{batch.Created: 2, batch.Done: 2})
}

func testReleaseKeepsAttempts(f *fixture) {
	id := f.create(2, lists(1))
	f.end(f.assign(id, "w1", 0), f.fails(0))
	for range 3 {
		c := f.assign(id, "w2", 0)
		require.Equal(f, 1, f.release(c))
		item := f.items(id)[0]
		require.Equal(f, batch.Failed, item.Status)
		require.Equal(f, 1, item.Attempts)
		require.Equal(f, []string{"w1"}, item.FailedOn)
		require.Equal(f, f.fails(0).Result, *item.Result)
	}
	waiting, _ := f.waiting(id, f.now.Add(10*time.Minute))
	require.Equal(f, []int{0}, waiting)
	f.end(f.assign(id, "w3", 0), f.fails(0))
	f.requireProgress(id, batch.Progress{batch.PermanentlyFailed: 1})
}

func testSettle(f *fixture) {
	id := f.create(1, lists(4))
	require.Equal(f, batch.Created, f.settle(id).Status)
	first, second := f.assign(id, "w1", 0, 1), f.assign(id, "w2", 2)
	require.Equal(f, batch.InProgress, f.settle(id).Status)
	require.Equal(f, batch.InProgress, f.chunk(first).Status)
	f.end(first, f.succeeds(0), f.fails(1))
	require.Equal(f, batch.InProgress, f.settle(id).Status)
	require.Equal(f, batch.Done, f.chunk(first).Status)
	require.Equal(f, batch.InProgress, f.chunk(second).Status)
	f.end(second, f.succeeds(2))
	b := f.settle(id)
	require.Equal(f, batch.InProgress, b.Status, "item 3 waits")
	require.True(f, b.FinishedAt.IsZero())
	f.end(f.assign(id, "w1", 3), f.succeeds(3))
	b = f.settle(id)
	require.Equal(f, batch.Done, b.Status)
	f.requireTime(f.now, b.FinishedAt)
	require.Equal(f, f.get(id), b)
	require.Equal(f, b, f.settle(id))
	f.requireProgress(id, batch.Progress{batch.Done: 3, batch.PermanentlyFailed: 1})
}

// testSettleWaitsForFailedItems checks that a batch whose items wait for another
// attempt is not over.
func testSettleWaitsForFailedItems(f *fixture) {
	id := f.create(2, lists(2))
	f.end(f.assign(id, "w", 0, 1), f.succeeds(0), f.fails(1))
	require.Equal(f, batch.InProgress, f.settle(id).Status)
	f.end(f.assign(id, "w", 1), f.fails(1))
	require.Equal(f, batch.Done, f.settle(id).Status)
}

func testCancel(f *fixture) {
	id := f.create(3, lists(4))
	c := f.assign(id, "w", 0, 1)
	f.end(c, f.succeeds(0), f.fails(1))
	done := f.items(id)[0]
	require.NoError(f, f.s.Cancel(f.Context(), id, "the user had enough", f.now))
	b := f.get(id)
	require.Equal(f, batch.PermanentlyFailed, b.Status)
	require.Equal(f, "the user had enough", b.Reason)
	f.requireTime(f.now, b.FinishedAt)
	f.requireProgress(id, batch.Progress{batch.Done: 1, batch.PermanentlyFailed: 3})
	items := f.items(id)
	require.Equal(f, done, items[0])
	for _, item := range items[1:] {
		require.Contains(f, item.Reason, "the user had enough")
	}
	require.Equal(f, 1, items[1].Attempts)
	require.Equal(f, f.fails(1).Result, *items[1].Result)
	waiting, next := f.waiting(id, f.now.Add(time.Hour))
	require.Empty(f, waiting)
	require.True(f, next.IsZero())
	require.ErrorIs(f, f.s.Cancel(f.Context(), id, "again", f.now), batch.ErrState)
	require.Equal(f, b, f.settle(id))
}

func testCancelInProgress(f *fixture) {
	id := f.create(3, lists(4))
	c, lost := f.assign(id, "w", 0, 1), f.assign(id, "w2", 2)
	require.NoError(f, f.s.Cancel(f.Context(), id, "enough", f.now))
	require.Equal(f, batch.PermanentlyFailed, f.get(id).Status)
	require.Equal(f, 0, f.progress(id)[batch.Created])
	if f.h.Execute == nil {
		f.requireProgress(id, batch.Progress{batch.InProgress: 3, batch.PermanentlyFailed: 1})
		f.end(c, f.succeeds(0), f.fails(1))
		items := f.items(id)
		require.Equal(f, batch.Done, items[0].Status)
		require.Equal(f, f.succeeds(0).Result, *items[0].Result)
		require.Equal(f, batch.PermanentlyFailed, items[1].Status)
		require.Equal(f, 1, items[1].Attempts)
		require.Equal(f, "enough", items[1].Reason)
		require.Equal(f, f.fails(1).Result, *items[1].Result)
		require.Equal(f, 1, f.release(lost))
		f.requireProgress(id, batch.Progress{batch.Done: 1, batch.PermanentlyFailed: 3})
	}
	require.Equal(f, batch.PermanentlyFailed, f.settle(id).Status)
}

func testRetry(f *fixture) {
	id := f.create(1, lists(3))
	require.Zero(f, f.retry(id))
	require.Equal(f, batch.Created, f.get(id).Status)
	f.end(f.assign(id, "w", 0, 1, 2), f.succeeds(0), f.fails(1), f.fails(2))
	require.Equal(f, batch.Done, f.settle(id).Status)
	require.Equal(f, 2, f.retry(id))
	b := f.get(id)
	require.Equal(f, batch.InProgress, b.Status)
	require.True(f, b.FinishedAt.IsZero())
	f.requireProgress(id, batch.Progress{batch.Done: 1, batch.Created: 2})
	for _, item := range f.items(id)[1:] {
		require.Zero(f, item.Attempts)
		require.Empty(f, item.Reason)
	}
	waiting, _ := f.waiting(id, f.now)
	require.Equal(f, []int{1, 2}, waiting)
	f.end(f.assign(id, "w", 1, 2), f.succeeds(1), f.fails(2))
	require.Equal(f, batch.Done, f.settle(id).Status)
	f.requireProgress(id, batch.Progress{batch.Done: 2, batch.PermanentlyFailed: 1})
	f.end(f.retried(id, 2), f.succeeds(2))
	require.Equal(f, batch.Done, f.settle(id).Status)
	require.Zero(f, f.retry(id))
	require.Equal(f, batch.Done, f.get(id).Status)
}

// testRetryBesideASettle retries batches that a head looks after all the time: it may not end
// one while items of it wait.
func testRetryBesideASettle(f *fixture) {
	rounds := 100
	if f.h.Small {
		rounds = 3
	}
	id := f.create(1, lists(1))
	settled := make(chan struct{})
	settling, stop := context.WithCancel(f.Context())
	go func() {
		defer close(settled)
		for settling.Err() == nil {
			if _, err := f.s.Settle(settling, id, f.now); err != nil && settling.Err() == nil {
				f.Errorf("settle: %v", err)
			}
		}
	}()
	f.end(f.assign(id, "w", 0), f.fails(0))
	for range rounds {
		require.Eventually(f, func() bool { return f.get(id).Status.Over() }, time.Minute, time.Millisecond)
		c := f.retried(id, 0)
		require.Equal(f, batch.InProgress, f.get(id).Status)
		f.end(c, f.fails(0))
	}
	stop()
	<-settled
}

// retried retries a batch and assigns an item.
func (f *fixture) retried(id string, item int) batch.Chunk {
	f.Helper()
	require.Equal(f, 1, f.retry(id))
	return f.assign(id, "w", item)
}

func testRetryCancelled(f *fixture) {
	id := f.create(2, lists(2))
	f.end(f.assign(id, "w", 0), f.succeeds(0))
	require.NoError(f, f.s.Cancel(f.Context(), id, "enough", f.now))
	c := f.retried(id, 1)
	require.Empty(f, f.get(id).Reason)
	f.end(c, f.fails(1))
	f.requireProgress(id, batch.Progress{batch.Done: 1, batch.Failed: 1})
	f.end(f.assign(id, "w", 1), f.succeeds(1))
	require.Equal(f, batch.Done, f.settle(id).Status)
}

func testDelete(f *fixture) {
	id, kept := f.create(1, lists(3)), f.create(1, lists(2))
	require.ErrorIs(f, f.s.Delete(f.Context(), id), batch.ErrState)
	c := f.assign(id, "w", 0, 1, 2)
	require.ErrorIs(f, f.s.Delete(f.Context(), id), batch.ErrState)
	f.end(c, f.succeeds(0), f.succeeds(1), f.fails(2))
	f.settle(id)
	require.NoError(f, f.s.Delete(f.Context(), id))
	_, err := f.s.Get(f.Context(), id)
	require.ErrorIs(f, err, batch.ErrNotFound)
	_, err = f.s.Items(f.Context(), id, 0, 10)
	require.ErrorIs(f, err, batch.ErrNotFound)
	require.ErrorIs(f, f.s.Delete(f.Context(), id), batch.ErrNotFound)
	require.Equal(f, []string{kept}, f.listed(false, 10))

	// Nothing is left that another batch of this id would find.
	b := f.newBatch(2)
	b.ID = id
	require.NoError(f, f.s.Create(f.Context(), b, lists(2)))
	f.requireProgress(id, batch.Progress{batch.Created: 2})
	require.Empty(f, f.chunks(id))

	require.NoError(f, f.s.Cancel(f.Context(), kept, "enough", f.now))
	require.NoError(f, f.s.Delete(f.Context(), kept))
	require.Equal(f, []string{id}, f.listed(false, 10))
}
