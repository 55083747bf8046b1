package inspect_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestListPages lists futures in both orders and in pages of all sizes: each future
// is on one page, and no page but that of an empty cluster is empty.
func TestListPages(t *testing.T) {
	t.Parallel()
	for _, shards := range []int{1, 4} {
		ctx := t.Context()
		db := embedded.OpenMemory(embedded.Options{})
		c, err := fdbmodel.Open(ctx, db, "list", fdbmodel.Options{Config: layout.Config{Shards: shards}})
		require.NoError(t, err)
		var all, free []layout.ID
		for n := range 12 {
			s := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}}
			if n%3 == 0 {
				s.Spec.Owner, s.Spec.Label = "batch", "odd"
			}
			answers, err := c.Submit(ctx, []fdbmodel.Submission{s})
			require.NoError(t, err)
			all = append(all, answers[0].ID)
			if n%3 != 0 {
				free = append(free, answers[0].ID)
			}
		}
		pages := func(f inspect.Filter, limit int) (ids []layout.ID) {
			for cursor := []byte(nil); ; {
				rows, next, err := inspect.List(ctx, c, f, cursor, limit)
				require.NoError(t, err)
				require.NotEmpty(t, rows)
				for i := range rows {
					ids = append(ids, rows[i].ID)
				}
				if cursor = next; len(cursor) == 0 {
					return ids
				}
			}
		}
		for limit := 1; limit <= 13; limit++ {
			left := 0
			oldest, newest := pages(inspect.Filter{}, limit), pages(inspect.Filter{Newest: true}, limit)
			some := pages(inspect.Filter{LeftOut: &left}, limit)
			require.Equal(t, 4, left, limit)
			require.ElementsMatch(t, all, oldest)
			require.ElementsMatch(t, all, newest)
			require.ElementsMatch(t, free, some)
			require.Len(t, pages(inspect.Filter{Owner: "batch"}, limit), 4)
			require.Len(t, pages(inspect.Filter{Label: "odd"}, limit), 4)
			if shards == 1 {
				require.Equal(t, all, oldest)
				require.Equal(t, free, some)
				slices.Reverse(newest)
				require.Equal(t, all, newest)
			}
		}
		require.NoError(t, db.Close())
	}
}

// TestPagesCountAnItemOnce: what the pages of a list leave out adds up to what there is.
func TestPagesCountAnItemOnce(t *testing.T) {
	t.Parallel()
	l := newListed(t, 4)
	for range 10 {
		l.submit(fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}})
		l.submit(fdbmodel.Submission{Spec: layout.Spec{Function: "go:f", Owner: "batch"}})
		l.clock.Advance(time.Second)
	}
	for _, f := range []inspect.Filter{{}, {State: layout.Ready}, {Queue: layout.DefaultQueue}, {Function: "go:f"}} {
		f.Newest, f.LeftOut = true, new(int)
		require.Len(t, l.pages(f, 3), 10)
		require.Equal(t, 10, *f.LeftOut, "%+v", f)
	}
}

// TestAListSkipsWhatItCanNotRead: a future of which any record can't be read is not listed.
func TestAListSkipsWhatItCanNotRead(t *testing.T) {
	t.Parallel()
	l := newListed(t, 1)
	first := l.submit(fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}})
	second := l.submit(fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}})
	_, err := l.c.Transact(t.Context(), kv.Options{}, func(tx kv.Attempt) error {
		tx.Set(l.c.Keys().State(first, layout.StateAttempts), []byte{layout.RecordVersion + 1})
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []layout.ID{second}, l.pages(inspect.Filter{}, 10))
}

// TestRowsThatAPageOfKeysCuts lists more keys than one read returns: each future once, and whole.
func TestRowsThatAPageOfKeysCuts(t *testing.T) {
	t.Parallel()
	const odd, claimed = 3, 300
	l := newListed(t, 1)
	subs := make([]fdbmodel.Submission, claimed)
	for i := range subs {
		subs[i].Spec.Function = "go:f"
	}
	_, err := l.c.Submit(t.Context(), subs)
	require.NoError(t, err)
	require.Len(t, l.claim(claimed), claimed)
	for range odd {
		l.submit(fdbmodel.Submission{Spec: layout.Spec{Function: "go:g"}})
	}
	for _, newest := range []bool{false, true} {
		rows, next, err := inspect.List(t.Context(), l.c, inspect.Filter{Newest: newest}, nil, inspect.MaxList)
		require.NoError(t, err)
		require.Empty(t, next)
		states := map[layout.State]int{}
		for i := range rows {
			states[rows[i].State()]++
		}
		require.Equal(t, map[layout.State]int{layout.Claimed: claimed, layout.Ready: odd}, states)
	}
}

// TestUntilIsExclusive lists what was submitted from a time on, and before another.
func TestUntilIsExclusive(t *testing.T) {
	t.Parallel()
	l := newListed(t, 4)
	var ids []layout.ID
	var times []time.Time
	for range 3 {
		times = append(times, l.clock.Now())
		ids = append(ids, l.submit(fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}}))
		l.clock.Advance(time.Millisecond)
	}
	for _, left := range []*int{nil, new(int)} {
		f := inspect.Filter{Since: times[1], Until: times[2], Newest: left != nil, LeftOut: left}
		require.Equal(t, ids[1:2], l.pages(f, 10))
	}
}

// TestItemsOfOneOwnerAreCounted: what a list of the futures of a batch, or with a label, leaves out is those alone.
func TestItemsOfOneOwnerAreCounted(t *testing.T) {
	t.Parallel()
	l := newListed(t, 4)
	for _, owner := range []string{"a", "b", "b", ""} {
		l.submit(fdbmodel.Submission{Spec: layout.Spec{Function: "go:f", Owner: owner}})
	}
	l.submit(fdbmodel.Submission{Spec: layout.Spec{Function: "go:f", Owner: "c", Label: "l"}})
	for want, filters := range map[int][]inspect.Filter{
		4: {{}}, 2: {{Owner: "b"}}, 0: {{Owner: "d"}, {Owner: "b", Label: "l"}}, 1: {{Owner: "a"}, {Label: "l"}},
	} {
		for _, f := range filters {
			f.Newest, f.LeftOut = true, new(int)
			l.pages(f, 10)
			require.Equal(t, want, *f.LeftOut, "%+v", f)
		}
	}
}

// TestAnIDWithoutATimeIsListedOnce has an id that says nothing of its age, and lies among those that do.
func TestAnIDWithoutATimeIsListedOnce(t *testing.T) {
	t.Parallel()
	l := newListed(t, 1)
	id := layout.ID{5: 1, 15: 1}
	require.True(t, id.Time().IsZero())
	l.submit(fdbmodel.Submission{ID: id, Spec: layout.Spec{Function: "go:f"}})
	last := l.submit(fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}})
	// The submits are of one time, and the ids decide.
	f := inspect.Filter{Function: "go:f", Newest: true, LeftOut: new(int)}
	require.Equal(t, []layout.ID{last, id}, l.pages(f, 10))
}

// TestACursorIsOfItsList refuses what another list, or another cluster, has given.
func TestACursorIsOfItsList(t *testing.T) {
	t.Parallel()
	l := newListed(t, 4)
	for _, cursor := range [][]byte{{0}, make([]byte, 17), {17: 0, 1: 4}, {17: 0, 0: 1}, make([]byte, 24)} {
		_, _, err := inspect.List(t.Context(), l.c, inspect.Filter{}, cursor, 1)
		require.ErrorIs(t, err, layout.ErrBadCursor, "%x", cursor)
	}
	_, _, err := inspect.List(t.Context(), l.c, inspect.Filter{}, []byte{17: 0, 1: 3}, 1)
	require.NoError(t, err)
}
