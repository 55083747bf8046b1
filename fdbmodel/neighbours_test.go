package fdbmodel_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/internal/clock"
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

func neighbours(n int) []fdbmodel.Submission {
	subs := make([]fdbmodel.Submission, n)
	for i := range subs {
		subs[i] = fdbmodel.Submission{ID: layout.BatchItemID("b", i), Spec: layout.Spec{Function: "go:f", Group: "b", Held: true}}
		subs[i].Args = make([]byte, []int{0, 10, 3000}[i%3])
	}
	return subs
}

func openNeighbours(t *testing.T, db kv.Database) *fdbmodel.Cluster {
	c, err := fdbmodel.Open(context.Background(), db, "neighbours", fdbmodel.Options{
		Clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000)), Config: layout.Config{Shards: 4},
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	require.NoError(t, err)
	return c
}

func TestRowsOfNeighboursAreThoseReadAlone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := storetest.New(t)
	c := openNeighbours(t, db)
	_, err := c.Submit(ctx, neighbours(3*layout.MaxSubmit))
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	crowded := func(tx kv.Tx, id layout.ID) {
		for n := range 20 {
			tx.Set(c.Keys().Subscriber(id, layout.SessionID(fmt.Sprint(n))), nil)
		}
	}
	for round := range 30 {
		// Some are missing, some far apart, some not in their order.
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
	c := openNeighbours(t, db)
	subs := neighbours(40)
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

func TestNeighboursAreMadeOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for seed := range uint64(20) {
		faults := faultkv.Wrap(storetest.New(t), faultkv.Everywhere(seed, 0.1))
		c := openNeighbours(t, faults)
		var makers sync.WaitGroup
		for range 3 {
			makers.Go(func() {
				answers, err := c.Submit(ctx, neighbours(25))
				if err != nil || len(answers) != 25 {
					t.Errorf("%d answers, %v", len(answers), err)
				}
			})
		}
		makers.Wait()
		faults.Flush()
		counts, err := c.GroupCounts(ctx, layout.DefaultQueue, "b")
		require.NoError(t, err)
		require.EqualValues(t, 25, counts[layout.Ready])
		report, err := audit.Check(ctx, c, audit.Options{})
		require.NoError(t, err)
		require.Empty(t, report.Problems, "seed %d", seed)

		other := neighbours(25)
		other[20].Spec.Function = "go:g"
		_, err = c.Submit(ctx, other)
		require.ErrorIs(t, err, fdbmodel.ErrIDInUse)
	}
}
