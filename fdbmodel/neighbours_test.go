package fdbmodel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
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

func neighbours(n int) []Submission {
	subs := make([]Submission, n)
	for i := range subs {
		subs[i] = Submission{ID: BatchItemID("b", i), Spec: Spec{Function: "go:f", Group: "b", Held: true}}
		subs[i].Args = make([]byte, []int{0, 10, 3000}[i%3])
	}
	return subs
}

func openNeighbours(t *testing.T, db kv.Database) *Cluster {
	c, err := Open(context.Background(), db, "neighbours", Options{
		Clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000)), Config: Config{Shards: 4},
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
	_, err := c.Submit(ctx, neighbours(3*MaxSubmit))
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	crowded := func(tx kv.Tx, id ID) {
		for n := range 20 {
			tx.Set(c.keys.subscriber(id, SessionID(fmt.Sprint(n))), nil)
		}
	}
	for round := range 30 {
		// Some are missing, some far apart, some not in their order.
		var ids []ID
		for i := random.IntN(2 * MaxSubmit); i < 4*MaxSubmit && len(ids) < 90; i += 1 + random.IntN(1+round%6) {
			ids = append(ids, BatchItemID("b", i))
		}
		if round%5 == 4 {
			ids[0], ids[1] = ids[1], ids[0]
		}
		tx := db.Begin(kv.Options{})
		if round > 20 {
			crowded(tx, ids[random.IntN(len(ids))])
		}
		shared := &countingReader{Reader: tx.Snapshot()}
		got := c.keys.askRows(shared, ids, c.keys.spec)
		for i, id := range ids {
			want, there, err := c.keys.askRecord(tx, id).wait(ctx)
			require.NoError(t, err)
			row, found, err := got[i].wait(ctx)
			require.NoError(t, err)
			require.Equal(t, want, row)
			require.Equal(t, there, found)
		}
		if round == 0 {
			require.LessOrEqual(t, shared.ranges, 3+len(ids)/maxTogether, "neighbours are read together")
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
	var odd, even []ID
	for i := range subs {
		if i%2 == 0 {
			even = append(even, subs[i].ID)
		} else {
			odd = append(odd, subs[i].ID)
		}
	}
	read := func(ids []ID) kv.Tx {
		tx := db.Begin(kv.Options{})
		for _, p := range c.keys.askRecords(tx, ids) {
			_, found, err := p.wait(ctx)
			require.NoError(t, err)
			require.True(t, found)
		}
		tx.Set(c.keys.state(ids[0], stateAttempts), nil)
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
		counts, err := c.GroupCounts(ctx, DefaultQueue, "b")
		require.NoError(t, err)
		require.EqualValues(t, 25, counts[Ready])
		report, err := c.Check(ctx, CheckOptions{})
		require.NoError(t, err)
		require.Empty(t, report.Problems, "seed %d", seed)

		other := neighbours(25)
		other[20].Spec.Function = "go:g"
		_, err = c.Submit(ctx, other)
		require.ErrorIs(t, err, ErrIDInUse)
	}
}
