package inspect_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestBreakdown counts futures by each thing that they may have in common.
func TestBreakdown(t *testing.T) {
	t.Parallel()
	l := newListed(t, 4)
	begin := l.clock.Now()
	for i := range 12 {
		s := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f", Queue: []string{"default", "q"}[i%2]},
			Args: []byte("abc")}
		switch i % 3 {
		case 0:
			s.Spec.Tags = []string{"a", "b"}
		case 1:
			s.Spec.Lane = layout.Lane{Kind: "k", Key: "x/y"}
		case 2:
			s.Spec.Owner = "batch"
		}
		l.submit(s)
		l.clock.Advance(time.Second)
	}
	l.claim(2)
	by := func(f inspect.Filter, by string) map[string]int {
		found, err := inspect.Breakdown(t.Context(), l.c, f, by)
		require.NoError(t, err)
		require.True(t, found.Complete)
		require.Zero(t, found.Others)
		groups := map[string]int{}
		for i, g := range found.Groups {
			groups[g.Value] = g.Futures
			require.True(t, i == 0 || g.Futures <= found.Groups[i-1].Futures, "the largest first")
		}
		return groups
	}
	free := inspect.Filter{Newest: true, LeftOut: new(int)}
	require.Equal(t, map[string]int{"a": 4, "b": 4, "": 4}, by(free, "tag"))
	require.Equal(t, map[string]int{"k/x/y": 4, "": 4}, by(free, "lane"))
	require.Equal(t, map[string]int{"default": 4, "q": 4}, by(free, "queue"))
	require.Equal(t, map[string]int{"go:f": 12}, by(inspect.Filter{}, "function"))
	require.Equal(t, map[string]int{"batch": 4, "": 8}, by(inspect.Filter{}, "batch"))
	require.Equal(t, map[string]int{"claimed": 2, "ready": 6}, by(free, "state"))
	require.Equal(t, map[string]int{string(l.worker.ID()): 2, "": 6}, by(free, "worker"))
	ofQueue := inspect.Filter{Newest: true, LeftOut: new(int), Queue: "q"}
	require.Equal(t, map[string]int{"a": 2, "b": 2, "": 2}, by(ofQueue, "tag"))
	require.Empty(t, by(inspect.Filter{Tag: "none", Newest: true}, "tag"))

	found, err := inspect.Breakdown(t.Context(), l.c, inspect.Filter{Tag: "a", Newest: true}, "queue")
	require.NoError(t, err)
	require.Equal(t, inspect.Groups{Futures: 4, Complete: true, Groups: []inspect.Group{
		{Value: "default", Futures: 2, Bytes: 6, Oldest: begin, Newest: begin.Add(6 * time.Second)},
		{Value: "q", Futures: 2, Bytes: 6, Oldest: begin.Add(3 * time.Second), Newest: begin.Add(9 * time.Second)},
	}}, found)

	// A worker that died still counts with what it had, as it does in lists.
	dead := l.worker.ID()
	_, err = l.c.ForceReap(t.Context(), dead)
	require.NoError(t, err)
	require.Equal(t, map[string]int{string(dead): 2, "": 6}, by(free, "worker"))
	ofDead := inspect.Filter{Newest: true, LeftOut: new(int), Worker: dead}
	require.Equal(t, map[string]int{"delayed": 2}, by(ofDead, "state"))

	_, err = inspect.Breakdown(t.Context(), l.c, free, "colour")
	require.ErrorIs(t, err, layout.ErrBadName)
	require.ErrorContains(t, err, "use one of tag, lane,")
	_, err = inspect.Breakdown(t.Context(), l.c, inspect.Filter{Lane: layout.Lane{Kind: "k"}}, "tag")
	require.ErrorIs(t, err, layout.ErrBadName)
}

// TestBreakdownIsBounded: it ends before all futures are counted, and names the largest groups.
func TestBreakdownIsBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("submits 21,000 futures")
	}
	l := newListed(t, 2)
	for i := range 210 {
		var all []fdbmodel.Submission
		for range 100 {
			all = append(all, fdbmodel.Submission{Spec: layout.Spec{Function: "go:f", Tags: []string{fmt.Sprint("t", i)}}})
		}
		_, err := l.c.Submit(t.Context(), all)
		require.NoError(t, err)
		l.clock.Advance(time.Second)
	}
	found, err := inspect.Breakdown(t.Context(), l.c, inspect.Filter{Newest: true, LeftOut: new(int)}, "tag")
	require.NoError(t, err)
	require.False(t, found.Complete)
	require.Equal(t, 20_000, found.Futures)
	require.Len(t, found.Groups, 100)
	require.Equal(t, 10_000, found.Others)
}

// TestOldestReady compares the oldest ready future of each queue with a look at all of them, and
// reads no more where many wait.
func TestOldestReady(t *testing.T) {
	t.Parallel()
	cost := func(many int) int64 {
		l := newListed(t, 4)
		want := map[string]time.Time{}
		for i := range many {
			s := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f", Queue: fmt.Sprint("q", i%3), Priority: uint8(i % 2)}}
			s.Spec.Requirements.CPU = int64(i % 5)
			at := l.clock.Now()
			switch {
			case i < 9: // waits for a time
				s.NotBefore = at.Add(9999 * time.Hour)
			case i < 18: // has an id without a time
				s.Key = fmt.Sprint(i)
			case want[s.Spec.Queue].IsZero():
				want[s.Spec.Queue] = at
			}
			l.submit(s)
			l.clock.Advance(time.Second)
		}
		before := l.store.n.Load()
		found, err := inspect.OldestReady(t.Context(), l.c)
		require.NoError(t, err)
		require.Len(t, found, 3)
		for queue, at := range want {
			require.WithinDuration(t, at, found[queue], time.Millisecond, queue)
		}
		return l.store.n.Load() - before
	}
	small, large := cost(200), cost(1000)
	require.LessOrEqual(t, large, small+30)

	l := newListed(t, 4)
	found, err := inspect.OldestReady(t.Context(), l.c)
	require.NoError(t, err)
	require.Empty(t, found)
}

// TestSweep finds all futures of a filter once, without items of batches.
func TestSweep(t *testing.T) {
	t.Parallel()
	l := newListed(t, 4)
	for i := range 60 {
		s := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}}
		if i%3 == 0 {
			s.Spec.Owner = "batch"
		}
		if i%2 == 0 {
			s.Spec.Tags = []string{"even"}
		}
		l.submit(s)
		l.clock.Advance(time.Second)
	}
	l.end(15, func(int) bool { return true })
	for _, c := range []struct {
		filter       inspect.Filter
		found, items int
	}{
		{inspect.Filter{}, 40, 20}, {inspect.Filter{State: layout.Failed}, 15, 0},
		{inspect.Filter{State: layout.Ready}, 25, 20}, {inspect.Filter{Tag: "even"}, 20, 10},
		{inspect.Filter{Newest: true, LeftOut: new(int)}, 40, 20},
	} {
		seen, items := map[layout.ID]bool{}, 0
		var cursor []byte
		for more := true; more; more = len(cursor) > 0 {
			n, next, err := inspect.Sweep(t.Context(), l.c, c.filter, cursor, func(*layout.Row) bool { return true },
				func(ids []layout.ID) error {
					for _, id := range ids {
						require.False(t, seen[id])
						seen[id] = true
					}
					return nil
				})
			require.NoError(t, err)
			items, cursor = items+n, next
		}
		require.Equal(t, []int{c.found, c.items}, []int{len(seen), items}, "%+v", c.filter)
	}
	_, _, err := inspect.Sweep(t.Context(), l.c, inspect.Filter{}, nil, func(*layout.Row) bool { return false },
		func([]layout.ID) error { panic("there are none") })
	require.NoError(t, err)
}
