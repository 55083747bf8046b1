package read_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/internal/storetest"
)

// countingReader counts reads of ranges.
type countingReader struct {
	kv.Reader
	ranges int
}

func (r *countingReader) GetRange(of kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	r.ranges++
	return r.Reader.GetRange(of, o)
}

func TestRowsOfNeighboursAreThoseReadAlone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := storetest.New(t)
	c := modeltest.OpenNeighbours(t, db)
	_, err := c.Submit(ctx, modeltest.Neighbours(3*layout.MaxSubmit))
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	crowded := func(tx kv.Tx, id layout.ID) {
		for n := range 20 {
			tx.Set(c.Keys().Subscriber(id, layout.SessionID(fmt.Sprint(n))), nil)
		}
	}
	for round := range 30 {
		// Some are missing, some are far apart, some are out of order.
		var ids []layout.ID
		for i := random.IntN(2 * layout.MaxSubmit); i < 4*layout.MaxSubmit && len(ids) < 90; i += 1 + random.IntN(1+round%6) {
			ids = append(ids, layout.BatchItemID("b", i))
		}
		if round%5 == 4 {
			ids[0], ids[1] = ids[1], ids[0]
		}
		tx := db.Begin(kv.Options{})
		if round > 20 {
			crowded(tx, ids[random.IntN(len(ids))])
		}
		shared := &countingReader{Reader: tx.Snapshot()}
		got := read.Rows(shared, c.Keys(), ids, c.Keys().Spec)
		for i, id := range ids {
			want, there, err := read.Record(tx, c.Keys(), id).Wait(ctx)
			require.NoError(t, err)
			row, found, err := got[i].Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, want, row)
			require.Equal(t, there, found)
		}
		if round == 0 {
			require.LessOrEqual(t, shared.ranges, 3+len(ids)/read.MaxTogether, "neighbours are read together")
		}
		tx.Cancel()
	}
}

func TestNeighboursDoNotConflict(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := storetest.New(t)
	c := modeltest.OpenNeighbours(t, db)
	subs := modeltest.Neighbours(40)
	_, err := c.Submit(ctx, subs)
	require.NoError(t, err)
	var odd, even []layout.ID
	for i := range subs {
		if i%2 == 0 {
			even = append(even, subs[i].ID)
		} else {
			odd = append(odd, subs[i].ID)
		}
	}
	read := func(ids []layout.ID) kv.Tx {
		tx := db.Begin(kv.Options{})
		for _, p := range read.Records(tx, c.Keys(), ids) {
			_, found, err := p.Wait(ctx)
			require.NoError(t, err)
			require.True(t, found)
		}
		tx.Set(c.Keys().State(ids[0], layout.StateAttempts), nil)
		return tx
	}
	first, second, late := read(even), read(odd), read(odd)
	_, err = first.Commit(ctx)
	require.NoError(t, err)
	_, err = second.Commit(ctx)
	require.NoError(t, err, "it read none of what the first one changed")
	_, err = late.Commit(ctx)
	require.ErrorIs(t, err, kv.ErrConflict)
}

// TestFuturesOfOneSubmitAreReadTogether reads futures whose ids were drawn
// together, and their users.
func TestFuturesOfOneSubmitAreReadTogether(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := storetest.New(t)
	c := modeltest.OpenNeighbours(t, db)
	submit := func(n int, inputs ...layout.ID) (ids []layout.ID) {
		subs := make([]fdbmodel.Submission, n)
		for i := range subs {
			subs[i] = fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}, Inputs: inputs}
		}
		answers, err := c.Submit(ctx, subs)
		require.NoError(t, err)
		for i := range answers {
			ids = append(ids, answers[i].ID)
		}
		return ids
	}
	ids := submit(2 * read.MaxTogether)
	users := map[layout.ID][]layout.ID{
		ids[3]: submit(2, ids[3]), ids[4]: submit(3, ids[4]), ids[40]: submit(300, ids[40]), ids[50]: submit(4, ids[50]),
	}
	ids = append(ids, submit(1)...)
	tx := db.Begin(kv.Options{})
	defer tx.Cancel()
	shared := &countingReader{Reader: tx.Snapshot()}
	for i, asked := range read.Rows(shared, c.Keys(), ids, c.Keys().Spec) {
		row, found, err := asked.Wait(ctx)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, ids[i], row.ID)
	}
	require.Equal(t, 3, shared.ranges)
	const limit = 3
	shared = &countingReader{Reader: tx.Snapshot()}
	for i, asked := range read.Users(shared, c.Keys(), ids, limit) {
		page, err := asked.Wait(ctx)
		require.NoError(t, err)
		want := users[ids[i]]
		require.Equal(t, len(want) >= limit, page.More || len(page.Items) == limit)
		for at, item := range page.Items {
			user, ok := layout.OtherEnd(item.Key)
			require.True(t, ok)
			require.Equal(t, want[at], user)
		}
		require.Len(t, page.Items, min(len(want), limit))
	}
	require.Greater(t, shared.ranges, read.MaxTogether, "those beside one with many users are read alone")
	require.Less(t, shared.ranges, len(ids)-read.MaxTogether/2)
}
