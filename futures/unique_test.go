package futures_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/storetest"
)

func uniqueTask(args string, u futures.Unique) futures.Task {
	return futures.Task{Function: "go:upper", Args: []byte(args), Unique: &u}
}

// TestUniqueAnswers awaits the other future that a submit returned, looks at one that was
// replaced, and releases a key.
func TestUniqueAnswers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c, other := newClients(t)
	e := newExecutor(t, c, echo)
	first, err := c.Submit(ctx, uniqueTask("a", futures.Unique{Key: "k"}))
	require.NoError(t, err)
	require.False(t, first.Existed())
	for _, client := range []*futures.Client{c, other} {
		got, err := client.Submit(ctx, uniqueTask("b", futures.Unique{Key: "k", OnConflict: futures.ConflictReturn}))
		require.NoError(t, err)
		require.Equal(t, first.ID(), got.ID())
		require.True(t, got.Existed())
		require.Equal(t, "arguments", got.Differs())
		_, err = client.Submit(ctx, uniqueTask("b", futures.Unique{Key: "k"}))
		require.ErrorIs(t, err, futures.ErrNotUnique)
	}
	shared, err := other.Submit(ctx, uniqueTask("a", futures.Unique{Key: "k", OnConflict: futures.ConflictReturn}))
	require.NoError(t, err)
	require.Empty(t, shared.Differs())
	require.Equal(t, 1, e.all(t))
	for _, f := range []*futures.Future{first, shared} {
		r, err := f.Await(ctx)
		require.NoError(t, err)
		require.Equal(t, "ran a", string(r.Value))
	}

	ever := futures.Unique{Key: "ever", Until: futures.UntilEver, OnConflict: futures.ConflictReplace}
	old, err := c.Submit(ctx, uniqueTask("1", ever))
	require.NoError(t, err)
	replacing, err := other.Submit(ctx, uniqueTask("2", ever))
	require.NoError(t, err)
	require.Equal(t, old.ID(), replacing.Replaced())
	_, err = old.Await(ctx)
	require.ErrorIs(t, err, futures.ErrCancelled)
	_, err = c.ReleaseUnique(ctx, uniqueTask("", ever))
	require.ErrorIs(t, err, futures.ErrTransition)
	require.Equal(t, 1, e.all(t))
	_, err = c.Submit(ctx, uniqueTask("3", ever))
	var refused *futures.NotUniqueError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, replacing.ID(), refused.ID)
	holder, err := c.ReleaseUnique(ctx, uniqueTask("", ever))
	require.NoError(t, err)
	require.Equal(t, replacing.ID(), holder.ID)
	_, err = c.Submit(ctx, uniqueTask("3", ever))
	require.NoError(t, err)
	_, err = c.UniqueHolder(ctx, futures.Task{Function: "go:upper"})
	require.ErrorIs(t, err, futures.ErrBadSpec)
}

// TestTheLastTaskOfACallCounts where each replaces the one before: both are told.
func TestTheLastTaskOfACallCounts(t *testing.T) {
	t.Parallel()
	c := newClient(t, storetest.New(t))
	e := newExecutor(t, c, echo)
	u := futures.Unique{Key: "k", OnConflict: futures.ConflictReplace}
	both, err := c.SubmitMany(t.Context(), []futures.Task{uniqueTask("a", u), uniqueTask("b", u)})
	require.NoError(t, err)
	require.Equal(t, both[0].ID(), both[1].Replaced())
	_, err = both[0].Await(t.Context())
	require.ErrorIs(t, err, futures.ErrCancelled)
	require.ErrorContains(t, err, "replaced by future "+both[1].ID().String())
	require.Equal(t, 1, e.all(t))
	r, err := both[1].Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ran b", string(r.Value))
}

// TestConcurrentUniqueSubmits has many calls share transactions: each gets its own answer.
func TestConcurrentUniqueSubmits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := newClient(t, storetest.New(t))
	e := newExecutor(t, c, echo)
	var made, refused, returned atomic.Int64
	var submits, awaits sync.WaitGroup
	errs := make([]error, 200)
	submits.Add(len(errs))
	for i := range errs {
		awaits.Go(func() {
			u := futures.Unique{Key: string(rune('a' + i%4))}
			if i%2 == 0 {
				u.OnConflict = futures.ConflictReturn
			}
			f, err := c.Submit(ctx, uniqueTask("x", u))
			submits.Done()
			switch {
			case errors.Is(err, futures.ErrNotUnique):
				refused.Add(1)
				return
			case err != nil:
				errs[i] = err
				return
			case f.Existed():
				returned.Add(1)
			default:
				made.Add(1)
			}
			_, errs[i] = f.Await(ctx)
		})
	}
	submits.Wait()
	require.Equal(t, 4, e.all(t))
	awaits.Wait()
	require.NoError(t, errors.Join(errs...))
	require.EqualValues(t, 4, made.Load())
	require.EqualValues(t, len(errs)-4, refused.Load()+returned.Load())
}

// TestUniqueInATransactionOfOnesOwn submits a unique future with SubmitTx, twice.
func TestUniqueInATransactionOfOnesOwn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := storetest.New(t)
	c := newClient(t, db)
	submit := func() error {
		_, err := kv.Transact(ctx, db, kv.Retry{}, func(tx kv.Attempt) error {
			_, err := c.SubmitTx(ctx, tx, []futures.Task{uniqueTask("x", futures.Unique{})})
			return err
		})
		return err
	}
	require.NoError(t, submit())
	require.ErrorIs(t, submit(), futures.ErrNotUnique)
}

// TestNoScheduleIsUnique has a schedule's task be unique, which Overlap is for.
func TestNoScheduleIsUnique(t *testing.T) {
	t.Parallel()
	c := newClient(t, storetest.New(t))
	_, err := c.PutSchedule(context.Background(), futures.Schedule{Name: "s", Every: time.Hour,
		Task: uniqueTask("x", futures.Unique{})})
	require.ErrorIs(t, err, futures.ErrBadSpec)
	require.ErrorContains(t, err, "not be unique")
}

// TestNobodyWaitsForTheSubmitsOfASchedule has a schedule's task wait for room, or ask for a worker that fits.
func TestNobodyWaitsForTheSubmitsOfASchedule(t *testing.T) {
	t.Parallel()
	c := newClient(t, storetest.New(t))
	for _, task := range []futures.Task{{RequireFit: true}, {WaitForRoom: true}} {
		task.Function = "go:x"
		_, err := c.PutSchedule(context.Background(), futures.Schedule{Name: "s", Every: time.Hour, Task: task})
		require.ErrorIs(t, err, futures.ErrBadSpec)
		require.ErrorContains(t, err, "leave out RequireFit and WaitForRoom")
	}
}
