package futures_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

func plainTasks(n int) []futures.Task {
	tasks := make([]futures.Task, n)
	for i := range tasks {
		tasks[i] = futures.Task{Function: "go:upper", NoNotify: true}
	}
	return tasks
}

// TestPutsThatExceedALimit are refused before anything is read, or wait.
func TestPutsThatExceedALimit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newClient(t, storetest.New(t))
	_, err := c.SetLimits(ctx, func(l *futures.Limits) { l.Pending, l.PerSecond = 1, 10 })
	require.NoError(t, err)
	_, err = c.Submit(ctx, plainTasks(1)[0])
	require.NoError(t, err)
	var limit *futures.LimitError
	for n := 0; limit == nil; n++ {
		require.Less(t, n, 100)
		r := strings.NewReader("value")
		if _, err = c.Put(ctx, r, futures.PutOptions{}); err != nil {
			require.ErrorAs(t, err, &limit)
			require.Equal(t, 5, r.Len())
		}
	}
	require.Equal(t, quota.LimitRate, limit.Limit)
	_, err = c.Put(ctx, strings.NewReader("value"), futures.PutOptions{WaitForRoom: true})
	require.NoError(t, err)
}

// TestARepeatedSubmitNeedsNoRoom: it stores nothing, alone or with others.
func TestARepeatedSubmitNeedsNoRoom(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newClient(t, storetest.New(t))
	_, err := c.SetLimits(ctx, func(l *futures.Limits) { l.Pending = 3 })
	require.NoError(t, err)
	tasks := plainTasks(3)
	for i, key := range []string{"a", "b", "c"} {
		tasks[i].Key = key
	}
	promise := futures.Task{Key: "approval", NoNotify: true}
	_, _, err = c.Promise(ctx, promise)
	require.NoError(t, err)
	_, err = c.SubmitMany(ctx, tasks[:2])
	require.NoError(t, err)
	for _, wait := range []bool{false, true} {
		promise.WaitForRoom = wait
		p, _, err := c.Promise(ctx, promise)
		require.NoError(t, err)
		require.True(t, p.Existed())
		tasks[0].WaitForRoom = wait
		f, err := c.Submit(ctx, tasks[0])
		require.NoError(t, err)
		require.True(t, f.Existed())
		many, err := c.SubmitMany(ctx, tasks[:2])
		require.NoError(t, err)
		require.Len(t, many, 2)
		_, err = c.Cluster().Transact(ctx, kv.Options{}, func(tx kv.Attempt) error {
			_, err := c.SubmitTx(ctx, tx, tasks[:2])
			return err
		})
		require.NoError(t, err)
	}
	tasks[0].WaitForRoom = false
	_, err = c.SubmitMany(ctx, tasks)
	require.ErrorIs(t, err, futures.ErrLimit)
	_, err = c.Submit(ctx, tasks[2])
	require.ErrorIs(t, err, futures.ErrLimit)
}

// TestSubmitsThatExceedALimit are refused, all of them or none, in each way to submit.
func TestSubmitsThatExceedALimit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := storetest.New(t)
	c := newClient(t, db)
	e := newExecutor(t, c, echo)
	_, err := c.SetLimits(ctx, func(l *futures.Limits) { l.Pending = 5 })
	require.NoError(t, err)
	made, err := c.SubmitMany(ctx, plainTasks(6))
	require.Empty(t, made)
	var limit *futures.LimitError
	require.ErrorAs(t, err, &limit)
	require.Zero(t, limit.RetryAfter)
	made, err = c.SubmitMany(ctx, plainTasks(4))
	require.NoError(t, err)
	require.Len(t, made, 4)
	_, err = c.SubmitMany(ctx, plainTasks(2))
	require.ErrorAs(t, err, &limit)
	require.Equal(t, quota.LimitPending, limit.Limit)
	require.Positive(t, limit.RetryAfter)
	_, err = c.Submit(ctx, plainTasks(1)[0])
	require.NoError(t, err)
	_, err = c.Submit(ctx, plainTasks(1)[0])
	require.ErrorIs(t, err, futures.ErrLimit)
	_, err = kv.Transact(ctx, db, kv.Retry{}, func(tx kv.Attempt) error {
		_, err := c.SubmitTx(ctx, tx, plainTasks(1))
		return err
	})
	require.ErrorIs(t, err, futures.ErrLimit)
	limits, used, err := c.Limits(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 5, limits.Pending)
	require.EqualValues(t, 5, used.Pending)
	require.Equal(t, 5, e.all(t))
}

// TestSubmitsThatFailLeaveRoom fail in a transaction, and count no more.
func TestSubmitsThatFailLeaveRoom(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	c, ctx := cluster.Client, t.Context()
	_, err := c.SetLimits(ctx, func(l *futures.Limits) { l.Pending = 1 })
	require.NoError(t, err)
	for _, lane := range []futures.Lane{{Kind: "none", Key: "k"}, {}} {
		_, err = kv.Transact(ctx, c.Cluster().Database(), kv.Retry{}, func(tx kv.Attempt) error {
			_, err := c.SubmitTx(ctx, tx, []futures.Task{{Function: "go:x", Lane: lane}})
			return err
		})
		require.Equal(t, !lane.IsZero(), err != nil, "%v", err)
		require.NotErrorIs(t, err, futures.ErrLimit)
	}
}

// TestPromisesAndForksCount are refused by a limit as other submits are, or wait.
func TestPromisesAndForksCount(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newClient(t, storetest.New(t))
	e := newExecutor(t, c, echo)
	over, err := c.Submit(ctx, plainTasks(1)[0])
	require.NoError(t, err)
	require.Equal(t, 1, e.all(t))
	_, err = over.Await(ctx)
	require.NoError(t, err)
	_, err = c.SetLimits(ctx, func(l *futures.Limits) { l.Pending = 1 })
	require.NoError(t, err)
	p, err := futures.NewPromise[int](ctx, c)
	require.NoError(t, err)
	fork, query := futures.ForkOptions{From: futures.ForkFromStart(), Name: "fix"}, futures.ForkQuery{}
	query.Filter.State = futures.Realized
	made := map[string]func(ctx context.Context, wait bool) error{
		"promise": func(ctx context.Context, wait bool) error {
			_, _, err := c.Promise(ctx, futures.Task{WaitForRoom: wait})
			return err
		},
		"fork": func(ctx context.Context, wait bool) error {
			fork.WaitForRoom = wait
			_, err := c.Fork(ctx, over.ID(), fork)
			return err
		},
		"forks": func(ctx context.Context, wait bool) error {
			fork.WaitForRoom = wait
			_, err := c.ForkMany(ctx, query, fork)
			return err
		},
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for name, make := range made {
		require.ErrorIs(t, make(ctx, false), futures.ErrLimit, name)
		require.ErrorIs(t, make(ended, true), context.Canceled, name)
	}
	_, err = c.Resolve(ctx, p.ID(), 1)
	require.NoError(t, err)
	require.NoError(t, made["fork"](ctx, true), "there is room")
}

// TestSubmitsThatWaitForRoom has one process submit more than may be pending, and another
// one run them: all are submitted in time, and never more at a time. A submit whose
// context ends says which limit kept it.
func TestSubmitsThatWaitForRoom(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx := context.Background()
		db := embedded.OpenMemory(embedded.Options{})
		c, err := futures.New(ctx, db, futures.Options{})
		require.NoError(t, err)
		other, err := futures.New(ctx, db, futures.Options{})
		require.NoError(t, err)
		_, err = c.SetLimits(ctx, func(l *futures.Limits) { l.Pending, l.PerSecond = 300, 1000 })
		require.NoError(t, err)
		clk := c.Cluster().Clock()
		pass := func(d time.Duration) { require.NoError(t, clock.Sleep(ctx, clk, d)) }
		var all atomic.Bool
		start := time.Now()
		go func() {
			tasks := plainTasks(2000)
			tasks[7].WaitForRoom = true
			made, err := c.SubmitMany(ctx, tasks)
			require.NoError(t, err)
			require.Len(t, made, 2000)
			all.Store(true)
		}()
		e, ran := newExecutor(t, other, echo), 0
		for ran < 2000 {
			pass(50 * time.Millisecond)
			_, used, err := other.Limits(ctx)
			require.NoError(t, err)
			require.LessOrEqual(t, used.Pending, int64(300))
			ran += e.all(t)
		}
		require.True(t, all.Load())
		require.GreaterOrEqual(t, time.Since(start), time.Second, "the rate holds as well")
		_, err = c.SubmitMany(ctx, plainTasks(300))
		for errors.Is(err, futures.ErrLimit) { // the rate
			pass(time.Second)
			_, err = c.SubmitMany(ctx, plainTasks(300))
		}
		require.NoError(t, err)
		short, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		waiting := plainTasks(1)[0]
		waiting.WaitForRoom = true
		_, err = c.Submit(short, waiting)
		require.ErrorIs(t, err, futures.ErrLimit)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotContains(t, err.Error(), "context")
		require.ErrorContains(t, err, "until the end of the wait")
		require.NoError(t, c.Close(ctx))
		require.NoError(t, other.Close(ctx))
		require.NoError(t, db.Close())
	})
}

// TestAWaitForRoomNamesTheStoreThatIsAway, whether it says so or stands still, before the first answer and behind one.
func TestAWaitForRoomNamesTheStoreThatIsAway(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx, db := context.Background(), faultkv.Wrap(embedded.OpenMemory(embedded.Options{}), faultkv.Options{})
		c, err := futures.New(ctx, db, futures.Options{})
		require.NoError(t, err)
		_, err = c.SetLimits(ctx, func(l *futures.Limits) { l.Pending = 1 })
		require.NoError(t, err)
		var away faultkv.Options
		away.Read[faultkv.Unavailable], away.Commit[faultkv.Unavailable] = 1, 1
		still := faultkv.Options{Latency: time.Hour, Sleep: func(ctx context.Context, _ time.Duration) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		for i, outage := range []faultkv.Options{away, still, away} {
			if i == 2 {
				_, err := c.Submit(ctx, plainTasks(1)[0])
				require.NoError(t, err)
			}
			short, cancel := context.WithTimeout(ctx, 10*time.Second)
			go func() {
				_ = clock.Sleep(ctx, c.Cluster().Clock(), time.Duration(i/2)*time.Second)
				db.SetOptions(outage)
			}()
			synctest.Wait()
			task := plainTasks(1)[0]
			task.WaitForRoom = true
			_, err = c.Submit(short, task)
			cancel()
			require.ErrorIs(t, err, kv.ErrUnavailable, "%d", i)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotErrorIs(t, err, futures.ErrLimit)
			db.SetOptions(faultkv.Options{})
		}
		require.NoError(t, c.Close(ctx))
		require.NoError(t, db.Close())
	})
}

// TestManyWaitForRoomThatIsForFew has one call submit far more than may ever be pending, in
// parts that fit.
func TestManyWaitForRoomThatIsForFew(t *testing.T) {
	t.Parallel()
	for _, most := range []int64{1, 3, 50} {
		bubble.Test(t, func(t *testing.T) {
			ctx := context.Background()
			db := embedded.OpenMemory(embedded.Options{})
			c, err := futures.New(ctx, db, futures.Options{})
			require.NoError(t, err)
			_, err = c.SetLimits(ctx, func(l *futures.Limits) { l.Pending = most })
			require.NoError(t, err)
			clk := c.Cluster().Clock()
			var all atomic.Bool
			go func() {
				tasks := plainTasks(120)
				tasks[0].WaitForRoom = true
				made, err := c.SubmitMany(ctx, tasks)
				require.NoError(t, err)
				require.Len(t, made, 120)
				all.Store(true)
			}()
			e := newExecutor(t, c, echo)
			for ran, looks := 0, 0; ran < 120; ran += e.all(t) {
				looks++
				require.Less(t, looks, 1000)
				require.NoError(t, clock.Sleep(ctx, clk, 250*time.Millisecond))
				_, used, err := c.Limits(ctx)
				require.NoError(t, err)
				require.LessOrEqual(t, used.Pending, most)
			}
			synctest.Wait()
			require.True(t, all.Load())
			require.NoError(t, c.Close(ctx))
			require.NoError(t, db.Close())
		})
	}
}

// TestALimitIsRaisedWhileASubmitWaits has a submit wait for a rate of one a day.
func TestALimitIsRaisedWhileASubmitWaits(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx := context.Background()
		c, err := futures.New(ctx, embedded.OpenMemory(embedded.Options{}), futures.Options{})
		require.NoError(t, err)
		defer c.Close(ctx)
		_, err = c.SetLimits(ctx, func(l *futures.Limits) { l.PerSecond = 0.00002 })
		require.NoError(t, err)
		tasks := plainTasks(2)
		_, err = c.SubmitMany(ctx, tasks[:1])
		require.NoError(t, err)
		start := time.Now()
		time.AfterFunc(time.Minute, func() {
			_, err := c.SetLimits(ctx, func(l *futures.Limits) { l.PerSecond = 0 })
			require.NoError(t, err)
		})
		tasks[1].WaitForRoom = true
		_, err = c.SubmitMany(ctx, tasks[1:])
		require.NoError(t, err)
		require.Less(t, time.Since(start), 2*time.Minute)
	})
}

// TestAWaitForRoomThatEndsWhileItAsks names the limit, though the last look at it did not end.
func TestAWaitForRoomThatEndsWhileItAsks(t *testing.T) {
	t.Parallel()
	c := newClient(t, storetest.New(t))
	ctx, cancel := context.WithCancel(context.Background())
	asked := 0
	full := &futures.LimitError{Limit: quota.LimitPending, Max: 2, Used: 2, RetryAfter: time.Millisecond}
	err := c.FindRoom(ctx, func(ctx context.Context, _ int) error {
		if asked++; asked == 1 {
			return full
		}
		cancel()
		return ctx.Err()
	})
	require.ErrorIs(t, err, futures.ErrLimit)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 2, asked)
}

// TestLabelsArePrintable refuses control characters in the labels of all that a client makes, and leaves alone what
// is stored.
func TestLabelsArePrintable(t *testing.T) {
	t.Parallel()
	cluster := futurestest.New(t)
	ctx, c := t.Context(), cluster.Client
	for _, label := range []string{"a\nb", "\x1b[31m", "\u202eb", "\x00", "\xff"} {
		task := futures.Task{Function: "go:f", Label: label}
		_, err := c.Submit(ctx, task)
		require.ErrorIs(t, err, futures.ErrBadSpec, "%q", label)
		require.ErrorContains(t, err, "printable characters")
		_, err = c.SubmitMany(ctx, []futures.Task{{Function: "go:f"}, task})
		require.ErrorIs(t, err, futures.ErrBadSpec, "%q", label)
		_, _, err = c.Promise(ctx, futures.Task{Label: label})
		require.ErrorIs(t, err, futures.ErrBadSpec, "%q", label)
		_, err = c.Put(ctx, strings.NewReader("x"), futures.PutOptions{Label: label})
		require.ErrorIs(t, err, futures.ErrBadSpec, "%q", label)
		_, err = c.PutSchedule(ctx, futures.Schedule{Name: "s", Every: time.Hour, Task: task})
		require.ErrorIs(t, err, futures.ErrBadSpec, "%q", label)
	}
	_, err := c.Submit(ctx, futures.Task{Function: "go:f", Label: "Zahlung ✓ für 7"})
	require.NoError(t, err)

	// As an earlier version has submitted it: the model takes it, and so do lists.
	made, err := c.Cluster().Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f", Label: "a\nb"}}})
	require.NoError(t, err)
	views, _, err := c.List(ctx, futures.Filter{Label: "a\nb"}, nil, 10)
	require.NoError(t, err)
	require.Len(t, views, 1)
	require.Equal(t, made[0].ID, views[0].ID)
	_, err = c.Cancel(ctx, made[0].ID, "")
	require.NoError(t, err)
	fork, err := c.Fork(ctx, made[0].ID, futures.ForkOptions{From: futures.ForkFromStart()})
	require.NoError(t, err)
	row, err := c.Cluster().Get(ctx, fork.ID)
	require.NoError(t, err)
	require.Equal(t, "a\nb", row.Spec.Label)
}
