package futures_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
	"github.com/futura-run/futura/workers"
)

// TestChildrenInheritTheDeadline submits futures from a function whose future has a
// deadline: they have it too, unless their own is earlier.
func TestChildrenInheritTheDeadline(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	c := cluster.Client
	now := cluster.Now().Truncate(time.Millisecond)
	child := futures.Define[int, int]("child")
	parent := futures.Define[[]time.Time, []futures.ID]("parent")
	cluster.Register(child.Bind(func(_ context.Context, n int) (int, error) { return n, nil }))
	cluster.Register(parent.Bind(func(ctx context.Context, own []time.Time) (ids []futures.ID, err error) {
		inner, err := futures.FromContext(ctx)
		if err != nil {
			return nil, err
		}
		var tasks []futures.Task
		for _, at := range own {
			task, err := child.Task(1, futures.Deadline(at))
			if err != nil {
				return nil, err
			}
			tasks = append(tasks, task)
		}
		many, err := inner.SubmitMany(ctx, tasks)
		if err != nil {
			return nil, err
		}
		one, err := child.Submit(ctx, inner, 2)
		if err != nil {
			return nil, err
		}
		apart, err := child.Submit(context.Background(), inner, 3)
		if err != nil {
			return nil, err
		}
		for _, f := range many {
			ids = append(ids, f.ID())
		}
		return append(ids, one.ID(), apart.ID()), nil
	}))
	own := []time.Time{now.Add(time.Minute), now.Add(time.Hour), {}}
	ids, err := parent.Call(t.Context(), c, own, futures.Deadline(now.Add(10*time.Minute)))
	require.NoError(t, err)
	for i, want := range []time.Time{
		now.Add(time.Minute), now.Add(10 * time.Minute), now.Add(10 * time.Minute), now.Add(10 * time.Minute), {},
	} {
		view, err := c.Get(t.Context(), ids[i])
		require.NoError(t, err)
		require.True(t, want.Equal(view.Deadline), "%d: %s", i, view.Deadline)
	}
}

// TestExpiryCountsFromWhenItMayRun has a delayed future expire after its time.
func TestExpiryCountsFromWhenItMayRun(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	c := cluster.Client
	now := cluster.Now()
	f, err := c.Submit(t.Context(), futures.Task{Function: "go:nobody", Delay: time.Hour, Expires: time.Minute})
	require.NoError(t, err)
	view, err := c.Get(t.Context(), f.ID())
	require.NoError(t, err)
	require.Equal(t, now.Add(61*time.Minute).UnixMilli(), view.ExpiresAt.UnixMilli())
	_, err = f.Await(t.Context())
	var failed *futures.FailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, futures.KindExpired, failed.Kind)
	require.Equal(t, now.Add(61*time.Minute).UnixMilli(), cluster.Now().UnixMilli(), "the await goes on until then")
	_, err = c.Submit(t.Context(), futures.Task{Function: "go:nobody", Expires: -1})
	require.ErrorIs(t, err, futures.ErrBadSpec)
}

// TestSnooze polls until something is there.
func TestSnooze(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	there := cluster.Now().Add(time.Hour)
	poll := futures.Define[string, string]("poll", futures.Retries(0))
	cluster.Register(poll.Bind(func(_ context.Context, what string) (string, error) {
		if cluster.Now().Before(there) {
			return "", workers.Snooze(10 * time.Minute)
		}
		return what + " is there", nil
	}))
	f, err := poll.Submit(t.Context(), cluster.Client, "it")
	require.NoError(t, err)
	text, err := f.Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, "it is there", text)
	view, err := cluster.Client.Get(t.Context(), f.ID())
	require.NoError(t, err)
	require.Equal(t, 6, view.Snoozes)
	require.Equal(t, 1, view.Attempt)
	late, err := poll.Submit(t.Context(), cluster.Client, "late", futures.Deadline(cluster.Now().Add(5*time.Minute)))
	require.NoError(t, err)
	there = there.Add(24 * time.Hour)
	_, err = late.Await(t.Context())
	require.True(t, errors.Is(err, futures.ErrFailed))
}
