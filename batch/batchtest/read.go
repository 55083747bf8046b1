package batchtest

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

func testList(f *fixture) {
	var want []string
	for i := range 7 {
		b := f.newBatch(1)
		b.CreatedAt = f.now.Add(time.Duration(i/2) * time.Second)
		// Of two that were created at one time, the lower id comes first; it says
		// nothing about others.
		b.ID = string("6745230"[i]) + uuid.NewString()[1:]
		require.NoError(f, f.s.Create(f.Context(), b, lists(1)))
		want = append(want, b.ID)
	}
	require.Equal(f, want, f.listed(false, 100))
	require.Equal(f, want, f.listed(false, 3))
	require.Equal(f, want, f.listed(true, 1))
	require.NoError(f, f.s.Cancel(f.Context(), want[2], "enough", f.now))
	c := f.assign(want[5], "w", 0)
	f.end(c, f.succeeds(0))
	require.Equal(f, batch.Done, f.settle(want[5]).Status)
	require.Equal(f, want, f.listed(false, 2))
	active := []string{want[0], want[1], want[3], want[4], want[6]}
	require.Equal(f, active, f.listed(true, 2))
	behind, err := f.s.List(f.Context(), true, want[2], 1)
	require.NoError(f, err)
	require.Len(f, behind, 1)
	require.Equal(f, want[3], behind[0].ID)
	require.NoError(f, f.s.Delete(f.Context(), want[5]))
	require.Equal(f, append(append([]string{}, want[:5]...), want[6]), f.listed(false, 2))
}

// listed pages through the list of batches.
func (f *fixture) listed(active bool, page int) (ids []string) {
	f.Helper()
	after := ""
	for {
		found, err := f.s.List(f.Context(), active, after, page)
		require.NoError(f, err)
		require.LessOrEqual(f, len(found), page)
		for _, b := range found {
			ids = append(ids, b.ID)
		}
		if len(found) < page {
			return ids
		}
		after = ids[len(ids)-1]
	}
}

func testItems(f *fixture) {
	id := f.create(1, lists(20))
	c := f.assign(id, "w", 3, 4, 5, 10, 11)
	f.end(c, f.succeeds(3), f.succeeds(4), f.fails(5), f.succeeds(10), f.fails(11))
	running := f.assign(id, "w", 0, 19)
	for _, q := range []struct {
		from, limit int
		states      []batch.Status
		want        []int
	}{
		{0, 100, nil, indexes(0, 20)},
		{0, 3, nil, []int{0, 1, 2}},
		{18, 5, nil, []int{18, 19}},
		{20, 5, nil, nil},
		{0, 100, []batch.Status{batch.Done}, []int{3, 4, 10}},
		{4, 1, []batch.Status{batch.Done}, []int{4}},
		{5, 5, []batch.Status{batch.Done}, []int{10}},
		{0, 100, []batch.Status{batch.PermanentlyFailed, batch.Done}, []int{3, 4, 5, 10, 11}},
		{1, 100, []batch.Status{batch.InProgress}, []int{19}},
		{2, 3, []batch.Status{batch.Created, batch.PermanentlyFailed}, []int{2, 5, 6}},
		{0, 100, []batch.Status{batch.Failed}, nil},
	} {
		found, err := f.s.Items(f.Context(), id, q.from, q.limit, q.states...)
		require.NoError(f, err)
		var got []int
		for _, item := range found {
			got = append(got, item.Index)
		}
		require.Equal(f, q.want, got, "%+v", q)
	}
	for _, i := range []int{0, 19} {
		require.Equal(f, running.ID, f.items(id)[i].Chunk)
		require.Equal(f, "w", f.items(id)[i].Worker)
	}
}

// testLargeResults reads a page whose results have no room in it together.
func testLargeResults(f *fixture) {
	id := f.create(1, lists(4))
	c := f.assign(id, "w", 0, 1, 2)
	large := strings.Repeat("x", batch.PageBytes)
	var ended []batch.Completion
	for i, out := range []string{"small", large, "behind"} {
		end := f.succeeds(i)
		end.Result = batch.Result{Stdout: out}
		ended = append(ended, end)
	}
	f.end(c, ended...)
	found, err := f.s.Items(f.Context(), id, 0, 10)
	require.NoError(f, err)
	require.Len(f, found, 4)
	require.Equal(f, "small", found[0].Result.Stdout)
	require.Nil(f, found[1].Result, "it has no room")
	require.GreaterOrEqual(f, found[1].LeftOut, int64(len(large)))
	require.Equal(f, batch.Done, found[1].Status)
	for i, want := range []string{"small", large, "behind"} {
		got, err := f.s.Result(f.Context(), id, i)
		require.NoError(f, err)
		require.True(f, got.Stdout == want, "%d bytes", len(got.Stdout))
	}
	none, err := f.s.Result(f.Context(), id, 3)
	require.NoError(f, err)
	require.Nil(f, none)
	for _, index := range []int{-1, 4, 1 << 32} {
		_, err = f.s.Result(f.Context(), id, index)
		require.ErrorIs(f, err, batch.ErrNotFound)
	}
	_, err = f.s.Result(f.Context(), uuid.NewString(), 0)
	require.ErrorIs(f, err, batch.ErrNotFound)
}

// testOutlines reads beginnings of results, one of which a store has in pieces.
func testOutlines(f *fixture) {
	id := f.create(1, lists(5))
	c := f.assign(id, "w", 0, 1, 2, 3)
	done := func(i int, out string) batch.Completion {
		end := f.succeeds(i)
		end.Result = batch.Result{Stdout: out, Stderr: "said", Usage: batch.Usage{WallClock: time.Second}}
		return end
	}
	failed := f.fails(3)
	failed.Result.Stderr = strings.Repeat("why ", 1000)
	large := strings.Repeat("0123456789", 500_000)
	f.end(c, done(0, "short"), done(1, strings.Repeat("é", 100)), done(2, large), failed)
	found, err := f.s.Outline(f.Context(), id, 0, 10, 101)
	require.NoError(f, err)
	require.Len(f, found, 5)
	whole := f.items(id)
	require.Equal(f, whole[0], found[0])
	require.Equal(f, strings.Repeat("é", 50), found[1].Result.Stdout, "no half of a character")
	require.Equal(f, int64(100), found[1].LeftOut)
	for i, all := range map[int]batch.Result{2: {Stdout: large, Stderr: "said"}, 3: failed.Result} {
		got := found[i].Result
		require.LessOrEqual(f, len(got.Stdout), 101)
		require.LessOrEqual(f, len(got.Stderr), 101)
		require.True(f, strings.HasPrefix(all.Stdout, got.Stdout) && strings.HasPrefix(all.Stderr, got.Stderr))
		require.GreaterOrEqual(f, found[i].LeftOut, all.Size()-got.Size())
		require.Equal(f, whole[i].Status, found[i].Status)
	}
	require.Equal(f, time.Second, found[2].Result.Usage.WallClock)
	require.Equal(f, whole[3].Result.ExitCode, found[3].Result.ExitCode)
	require.Len(f, found[3].Result.Stderr, 101)
	require.Equal(f, whole[4], found[4], "it has no result")
	without, err := f.s.Outline(f.Context(), id, 0, 10, 0)
	require.NoError(f, err)
	require.Len(f, without, 5)
	for i, item := range without {
		require.Nil(f, item.Result)
		require.Zero(f, item.LeftOut)
		require.Equal(f, whole[i].Arguments, item.Arguments)
	}
	some, err := f.s.Outline(f.Context(), id, 1, 1, 101, batch.Done)
	require.NoError(f, err)
	require.Equal(f, found[1:2], some)
	_, err = f.s.Outline(f.Context(), uuid.NewString(), 0, 1, 101)
	require.ErrorIs(f, err, batch.ErrNotFound)
}

func testWaiting(f *fixture) {
	id := f.create(3, lists(6))
	waiting, next := f.waiting(id, f.now)
	require.Equal(f, indexes(0, 6), waiting)
	require.True(f, next.IsZero())
	some, _, err := f.s.Waiting(f.Context(), id, f.now, 4)
	require.NoError(f, err)
	require.Len(f, some, 4)
	for _, item := range some {
		require.Equal(f, lists(6)[item.Index], item.Arguments)
		require.Equal(f, batch.ItemID(&f.newBatch(1).Template, item.Arguments), item.ID)
	}
	c := f.assign(id, "w", 0, 1, 2, 3)
	waiting, next = f.waiting(id, f.now)
	require.Equal(f, []int{4, 5}, waiting)
	require.True(f, next.IsZero())

	soon, late := f.fails(1), f.fails(2)
	soon.DueAt, late.DueAt = f.now.Add(time.Hour), f.now.Add(3*time.Hour)
	f.end(c, f.fails(0), soon, late, f.succeeds(3))
	// An attempt takes some time in a store that runs its items.
	waiting, next = f.waiting(id, f.now.Add(10*time.Minute))
	require.Equal(f, []int{0, 4, 5}, waiting)
	f.requireTime(soon.DueAt, next)
	waiting, next = f.waiting(id, f.now.Add(2*time.Hour))
	require.Equal(f, []int{0, 1, 4, 5}, waiting)
	f.requireTime(late.DueAt, next)
	waiting, next = f.waiting(id, f.now.Add(4*time.Hour))
	require.Equal(f, []int{0, 1, 2, 4, 5}, waiting)
	require.True(f, next.IsZero())
	_, next, err = f.s.Waiting(f.Context(), id, f.now.Add(10*time.Minute), 1)
	require.NoError(f, err)
	f.requireTime(soon.DueAt, next)
	f.requireTime(soon.DueAt, f.items(id)[1].DueAt)
	for limit := 1; limit <= 6; limit++ {
		some, _, err = f.s.Waiting(f.Context(), id, f.now.Add(4*time.Hour), limit)
		require.NoError(f, err)
		require.Len(f, some, min(limit, 5))
	}
	if f.h.Execute == nil {
		waiting, _ = f.waiting(id, soon.DueAt)
		require.Contains(f, waiting, 1)
		waiting, _ = f.waiting(id, soon.DueAt.Add(-time.Millisecond))
		require.NotContains(f, waiting, 1)
	}

	// What is not due can be assigned all the same.
	f.assign(id, "w", 2)
	waiting, _ = f.waiting(id, f.now.Add(4*time.Hour))
	require.Equal(f, []int{0, 1, 4, 5}, waiting)
}

// requireTime compares times. One that a worker was given may be late.
func (f *fixture) requireTime(want, got time.Time) {
	f.Helper()
	tolerance := time.Duration(0)
	if f.h.Execute != nil {
		tolerance = 5 * time.Minute
	}
	require.WithinDuration(f, want, got, tolerance)
}

func testReason(f *fixture) {
	id := f.create(1, lists(1))
	require.NoError(f, f.s.SetReason(f.Context(), id, "no worker answered"))
	require.Equal(f, "no worker answered", f.get(id).Reason)
	require.NoError(f, f.s.SetReason(f.Context(), id, ""))
	require.Empty(f, f.get(id).Reason)
	require.NoError(f, f.s.SetReason(f.Context(), id, "again"))
	f.end(f.assign(id, "w", 0), f.succeeds(0))
	require.Empty(f, f.settle(id).Reason)
	require.ErrorIs(f, f.s.SetReason(f.Context(), id, "late"), batch.ErrState)
	require.Empty(f, f.get(id).Reason)
}

func testWatch(f *fixture) {
	id := f.create(1, lists(2))
	changed, stop, ok, err := f.s.Watch(f.Context(), id)
	require.NoError(f, err)
	if !ok {
		f.Skip("the store can't tell of changes")
	}
	defer stop()
	other := f.s
	if f.h.Reopen != nil {
		other = f.h.Reopen(f.T, f.s)
	}
	rings := func(what string) {
		f.Helper()
		select {
		case <-changed:
		case <-time.After(20 * time.Second):
			require.Fail(f, "no ring after "+what)
		}
	}
	mine := f.s
	f.s = other
	c := f.assign(id, "w", 0)
	rings("assign")
	f.end(c, f.succeeds(0))
	rings("complete")
	c = f.assign(id, "w", 1)
	f.end(c, f.fails(1))
	require.Equal(f, batch.Done, f.settle(id).Status)
	rings("settle")
	f.s = mine
	require.Equal(f, batch.Done, f.get(id).Status)
	stop()
	stop()
	f.watchBatch(other)
}

// watchBatch checks that changes of a batch alone ring, while its items stay as
// they are.
func (f *fixture) watchBatch(other batch.Store) {
	f.Helper()
	id := f.create(1, lists(1))
	c := f.assign(id, "w", 0)
	f.rings(id, "a reason", func() error { return other.SetReason(f.Context(), id, "why") })
	f.end(c, f.succeeds(0))
	f.rings(id, "settle", func() error { _, err := other.Settle(f.Context(), id, f.now); return err })
}

// rings checks that a watch that begins here reports a change.
func (f *fixture) rings(id, what string, change func() error) {
	f.Helper()
	changed, stop, _, err := f.s.Watch(f.Context(), id)
	require.NoError(f, err)
	defer stop()
	require.NoError(f, change())
	select {
	case <-changed:
	case <-time.After(20 * time.Second):
		require.Fail(f, "no ring after "+what)
	}
}

// testSecondHandle checks that another process sees what this one did.
func testSecondHandle(f *fixture) {
	if f.h.Reopen == nil {
		f.Skip("the store lives in one process")
	}
	id := f.create(3, lists(4))
	c := f.assign(id, "w", 0, 1)
	other := f.h.Reopen(f.T, f.s)
	want := f.items(id)
	got, err := other.Items(f.Context(), id, 0, 10)
	require.NoError(f, err)
	require.Equal(f, want, got)
	b, err := other.Get(f.Context(), id)
	require.NoError(f, err)
	require.Equal(f, f.get(id), b)
	mine := f.s
	f.s = other
	f.end(c, f.succeeds(0), f.fails(1))
	f.s = mine
	f.requireProgress(id, batch.Progress{batch.Done: 1, batch.Failed: 1, batch.Created: 2})
	_, durable := f.s.Describe()
	require.True(f, durable)
}

func testDescribe(f *fixture) {
	name, _ := f.s.Describe()
	require.NotEmpty(f, name)
}

func testCancelledContext(f *fixture) {
	id := f.create(1, lists(1))
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	_, err := f.s.Get(ctx, id)
	require.ErrorIs(f, err, context.Canceled)
	require.ErrorIs(f, f.s.Cancel(ctx, id, "why", f.now), context.Canceled)
	c := f.newChunk(id, "w")
	_, err = f.s.Assign(ctx, &c, []int{0})
	require.ErrorIs(f, err, context.Canceled)
	f.requireProgress(id, batch.Progress{batch.Created: 1})
}
