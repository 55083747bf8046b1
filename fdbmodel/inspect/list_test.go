package inspect_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
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
