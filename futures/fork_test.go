package futures_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/futurestest"
	"github.com/futura-run/futura/workers"
)

// ledger is an order whose second step fails until the code is mended.
type ledger struct {
	mended           bool
	reserved, charge []int
}

type receipt struct {
	Seat int `json:"seat"`
}

func (l *ledger) order(ctx context.Context, n int) (string, error) {
	seat, err := futures.Step(ctx, "reserve", func(context.Context) (receipt, error) {
		l.reserved = append(l.reserved, n)
		return receipt{n}, nil
	})
	if err != nil {
		return "", err
	}
	id, err := futures.Step(ctx, "charge", func(context.Context) (string, error) {
		if !l.mended {
			return "", workers.Permanent(errors.New("card declined"))
		}
		l.charge = append(l.charge, n)
		return fmt.Sprint("paid ", n), nil
	})
	return fmt.Sprintf("seat %d, %s", seat.Seat, id), err
}

// TestAForkGoesOnOnTodaysCode has a function fail for good in a step, mends it, and forks the future.
func TestAForkGoesOnOnTodaysCode(t *testing.T) {
	t.Parallel()
	n := futurestest.New(t)
	l := &ledger{}
	order := futures.Define[int, string]("order")
	n.Register(order.Bind(l.order))
	f, err := order.Submit(t.Context(), n.Client, 7)
	require.NoError(t, err)
	_, err = f.Await(t.Context())
	require.ErrorIs(t, err, futures.ErrFailed)
	l.mended = true
	result := func(o futures.ForkOptions) string {
		made, err := n.Client.Fork(t.Context(), f.ID(), o)
		require.NoError(t, err)
		text, err := order.Of(n.Client.Future(made.ID)).Await(t.Context())
		require.NoError(t, err)
		return text
	}
	require.Equal(t, "seat 7, paid 7", result(futures.ForkOptions{}))
	require.Len(t, l.reserved, 1, "what is recorded does not run again")
	require.Equal(t, "seat 8, paid 7", result(futures.ForkOptions{Set: map[string]any{"reserve": receipt{8}}}))
	require.Equal(t, "seat 7, by hand", result(futures.ForkOptions{Set: map[string]any{"charge": "by hand"}}))
	require.Len(t, l.reserved, 1)
	require.Len(t, l.charge, 2)
	require.Equal(t, "seat 7, paid 7", result(futures.ForkOptions{From: futures.ForkFromStep("reserve")}))
	require.Len(t, l.reserved, 2)
	require.Equal(t, "seat 7, paid 7", result(futures.ForkOptions{From: futures.ForkFromStart()}))
	require.Len(t, l.reserved, 3)
	all, last, err := n.Client.Forks(t.Context(), f.ID(), futures.ID{}, 0)
	require.NoError(t, err)
	require.Len(t, all, 5)
	require.Equal(t, time.UTC, all[0].SubmittedAt.Location(), "as all times in JSON")
	require.True(t, last.IsZero())
	view, err := n.Client.Get(t.Context(), all[0].ID)
	require.NoError(t, err)
	require.Equal(t, f.ID(), view.Fork.Source)

	made, err := n.Client.Fork(t.Context(), f.ID(), futures.ForkOptions{Set: map[string]any{"reserve": "a text"}})
	require.NoError(t, err)
	_, err = n.Client.Future(made.ID).Await(t.Context())
	require.ErrorContains(t, err, "step reserve: 8 bytes of json")
	_, err = n.Client.Fork(t.Context(), all[0].ID, futures.ForkOptions{})
	require.ErrorIs(t, err, futures.ErrNothingFailed)
	_, err = n.Client.Fork(t.Context(), f.ID(), futures.ForkOptions{Set: map[string]any{"reserve": func() {}}})
	require.ErrorIs(t, err, futures.ErrBadSpec)
	_, err = n.Client.Fork(t.Context(), f.ID(), futures.ForkOptions{Name: "\n"})
	require.ErrorIs(t, err, futures.ErrBadName)
}

// TestManyForks previews, limits, interrupts and repeats the forks of many futures, some of which fail again.
func TestManyForks(t *testing.T) {
	t.Parallel()
	n := futurestest.New(t)
	order := futures.Define[int, string]("order")
	n.Register(order.Bind(func(ctx context.Context, n int) (string, error) {
		if n%10 == 3 {
			return "", workers.Permanent(errors.New("no such order"))
		}
		_, err := futures.Step(ctx, "reserve", func(context.Context) (int, error) { return n, nil })
		return "", errors.Join(err, workers.Permanent(errors.New("card declined")))
	}))
	const count = 120
	var made []*futures.Typed[string]
	for i := range count {
		f, err := order.Submit(t.Context(), n.Client, i)
		require.NoError(t, err)
		made = append(made, f)
	}
	for _, f := range made {
		_, err := f.Await(t.Context())
		require.ErrorIs(t, err, futures.ErrFailed)
	}
	fix := futures.ForkOptions{Name: "fix"}
	many := func(ctx context.Context, q futures.ForkQuery, want error) futures.ForkedMany {
		q.Filter.Function = "go:order"
		done, err := n.Client.ForkMany(ctx, q, fix)
		require.ErrorIs(t, err, want)
		return done
	}
	preview := many(t.Context(), futures.ForkQuery{Preview: true}, nil)
	require.Equal(t, [3]int{count * 9 / 10, count * 9 / 10, count / 10},
		[3]int{preview.Matched, preview.Forked, preview.Refused})
	require.Len(t, preview.First, 10)
	require.Empty(t, preview.First[0].State)
	require.Len(t, preview.Refusals, 10)
	require.Contains(t, preview.Refusals[0].Reason, "recorded no step")
	declined := many(t.Context(), futures.ForkQuery{Preview: true, Filter: futures.Filter{Error: "DECLINED"}}, nil)
	require.Equal(t, [2]int{count * 9 / 10, 0}, [2]int{declined.Matched, declined.Refused})

	some := many(t.Context(), futures.ForkQuery{Limit: 5}, nil)
	require.Equal(t, [2]int{5, 5}, [2]int{some.Matched, some.Forked})
	require.Empty(t, some.Cursor)
	repeated := many(t.Context(), futures.ForkQuery{Limit: 5}, nil)
	require.Equal(t, [3]int{5, 0, 5}, [3]int{repeated.Matched, repeated.Forked, repeated.Existed})
	source := some.First[0]
	listedForks, _, err := n.Client.Forks(t.Context(), source.Source, futures.ID{}, 0)
	require.NoError(t, err)
	require.Equal(t, source.ID, listedForks[0].ID)
	require.False(t, listedForks[0].SubmittedAt.IsZero())
	for _, f := range some.First { // they fail again, and are no sources of their own name
		_, err := n.Client.Future(f.ID).Await(t.Context())
		require.ErrorIs(t, err, futures.ErrFailed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cut := many(ctx, futures.ForkQuery{Progress: func(*futures.ForkedMany) { cancel() }}, context.Canceled)
	require.Less(t, cut.Matched, count*9/10)
	rest := many(t.Context(), futures.ForkQuery{}, nil)
	require.Equal(t, count*9/10, rest.Matched)
	require.Equal(t, rest.Matched, rest.Forked+rest.Existed)
	require.GreaterOrEqual(t, rest.Existed, cut.Matched)
	require.GreaterOrEqual(t, rest.OfName, 5)
	again := many(t.Context(), futures.ForkQuery{}, nil)
	require.Equal(t, [2]int{0, count * 9 / 10}, [2]int{again.Forked, again.Existed})
	listed, _, err := n.Client.List(t.Context(), futures.Filter{Label: "fix"}, nil, 1000)
	require.NoError(t, err)
	require.Len(t, listed, count*9/10, "each one once")

	_, err = n.Client.ForkMany(t.Context(), futures.ForkQuery{}, futures.ForkOptions{})
	require.ErrorIs(t, err, futures.ErrBadName)
	many(t.Context(), futures.ForkQuery{Filter: futures.Filter{State: futures.Ready}}, futures.ErrBadSpec)
}

// TestManyForksGoOnWhereTheyWere interrupts the forks of more futures than one page has, and goes on with the cursor.
func TestManyForksGoOnWhereTheyWere(t *testing.T) {
	t.Parallel()
	n := futurestest.New(t)
	double := futures.Define[int, int]("double")
	n.Register(double.Bind(func(_ context.Context, n int) (int, error) { return 2 * n, nil }))
	const count = 1100 // a page has 1,000
	fs, err := double.Map(t.Context(), n.Client, make([]int, count))
	require.NoError(t, err)
	_, err = futures.AwaitAll(t.Context(), fs)
	require.NoError(t, err)
	query := futures.ForkQuery{Filter: futures.Filter{State: futures.Realized, Function: "go:double"}}
	fix := futures.ForkOptions{Name: "fix", From: futures.ForkFromStart()}
	ctx, cancel := context.WithCancel(t.Context())
	query.Progress = func(*futures.ForkedMany) { cancel() }
	cut, err := n.Client.ForkMany(ctx, query, fix)
	require.ErrorIs(t, err, context.Canceled)
	require.Positive(t, cut.Forked)
	query.Progress, query.Until = nil, n.Client.Cluster().Now().Add(-1)
	for done := cut; ; {
		query.Cursor = done.Cursor
		done, err = n.Client.ForkMany(t.Context(), query, fix)
		require.NoError(t, err)
		require.LessOrEqual(t, done.Matched, 1000, "its time is over after one page")
		if len(done.Cursor) == 0 {
			break
		}
	}
	for _, query.Limit = range []int{1000, 1050} {
		query.Cursor, query.Until = nil, n.Client.Cluster().Now().Add(-1)
		done, err := n.Client.ForkMany(t.Context(), query, fix)
		require.NoError(t, err)
		require.Equal(t, 1000, done.Matched)
		require.Equal(t, query.Limit > 1000, len(done.Cursor) > 0, "as many as were asked for")
		query.Until = time.Time{}
		done, err = n.Client.ForkMany(t.Context(), query, fix)
		require.NoError(t, err)
		require.Equal(t, query.Limit, done.Matched)
		require.Empty(t, done.Cursor)
	}
	query.Cursor, query.Until, query.Limit = nil, time.Time{}, 0
	all, err := n.Client.ForkMany(t.Context(), query, fix)
	require.NoError(t, err)
	require.Equal(t, [2]int{0, count}, [2]int{all.Forked, all.Existed})
}

// TestForksThatExistNeedNoRoom repeats forks of a name in a cluster that is full.
func TestForksThatExistNeedNoRoom(t *testing.T) {
	t.Parallel()
	n, ctx := futurestest.New(t), t.Context()
	l := &ledger{}
	order := futures.Define[int, string]("order")
	n.Register(order.Bind(l.order))
	var failed []futures.ID
	for i := range 2 {
		f, err := order.Submit(ctx, n.Client, i)
		require.NoError(t, err)
		_, err = f.Await(ctx)
		require.ErrorIs(t, err, futures.ErrFailed)
		failed = append(failed, f.ID())
	}
	fix := futures.ForkOptions{Name: "fix"}
	first, err := n.Client.Fork(ctx, failed[0], fix)
	require.NoError(t, err)
	n.Run()
	limit := func(pending int64) {
		_, err := n.Client.SetLimits(ctx, func(l *futures.Limits) { l.Pending = pending })
		require.NoError(t, err)
	}
	_, err = n.Client.Submit(ctx, futures.Task{Function: "go:later", Delay: time.Hour})
	require.NoError(t, err)
	limit(1)
	for _, wait := range []bool{false, true} {
		fix.WaitForRoom = wait
		again, err := n.Client.Fork(ctx, failed[0], fix)
		require.NoError(t, err)
		require.True(t, again.Existed)
		require.Equal(t, first.ID, again.ID)
		_, err = n.Client.Fork(ctx, failed[1], fix)
		require.ErrorIs(t, err, futures.ErrLimit)
		_, err = n.Client.ForkMany(ctx, futures.ForkQuery{}, fix)
		require.ErrorIs(t, err, futures.ErrLimit)
	}
	_, err = n.Client.Fork(ctx, failed[0], futures.ForkOptions{})
	require.ErrorIs(t, err, futures.ErrLimit)
	limit(2)
	done, err := n.Client.ForkMany(ctx, futures.ForkQuery{}, fix)
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, []int{done.Existed, done.Forked})
	done, err = n.Client.ForkMany(ctx, futures.ForkQuery{}, fix)
	require.NoError(t, err)
	require.Equal(t, []int{2, 0}, []int{done.Existed, done.Forked})
}
