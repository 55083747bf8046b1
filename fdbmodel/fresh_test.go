package fdbmodel

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// readStore counts the reads of transactions that end claims.
type readStore struct {
	kv.Database
	reads atomic.Int64
}

type readTx struct {
	kv.Tx
	reads *atomic.Int64
}

func (s *readStore) Begin(o kv.Options) kv.Tx {
	tx := s.Database.Begin(o)
	if o.Tag != "futura-finish" {
		return tx
	}
	return readTx{tx, &s.reads}
}

func (t readTx) Get(key []byte) kv.Pending[[]byte] {
	t.reads.Add(1)
	return t.Tx.Get(key)
}

func (t readTx) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	t.reads.Add(1)
	return t.Tx.GetRange(r, o)
}

// TestAFreshClaimEndsWithoutAReadOfIt: what a claim has read need not be read again for its end, unless that was a
// while ago, the future had more records than a claim keeps, or they have changed since.
func TestAFreshClaimEndsWithoutAReadOfIt(t *testing.T) {
	t.Parallel()
	ctx, virtual := context.Background(), clock.NewVirtual(clock.Real{}.Now())
	db := &readStore{Database: storetest.New(t)}
	c, err := Open(ctx, db, "fresh", Options{Clock: virtual, Config: layout.Config{Shards: 1}})
	require.NoError(t, err)
	w := &waker{t, ctx, db, c}
	r := w.register(9, "go:f")
	submit := func(s Submission) layout.ID {
		submitted, err := c.Submit(ctx, []Submission{s})
		require.NoError(t, err)
		return submitted[0].ID
	}
	claim := func() *ClaimedFuture {
		answer, err := r.Claim(ctx, ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
		require.NoError(t, err)
		require.Len(t, answer.Futures, 1)
		return &answer.Futures[0]
	}
	state := func(id layout.ID) layout.State {
		row, err := c.Get(ctx, id)
		require.NoError(t, err)
		return row.State()
	}
	var dependant layout.ID
	for _, one := range []struct {
		name          string
		before, since func(layout.ID)
		reads         int64
		state         layout.State
	}{
		{name: "at once", state: layout.Realized},
		{name: "later", since: func(layout.ID) { virtual.Advance(2 * recentClaim) }, reads: 1, state: layout.Realized},
		{name: "after a failure", before: func(id layout.ID) {
			_, err := r.Finish(ctx, []Completion{{Future: claim(), Exception: &layout.Exception{Kind: layout.KindError},
				RetryIn: new(time.Duration)}})
			require.NoError(t, err)
			require.Equal(t, layout.Ready, state(id))
		}, reads: 1, state: layout.Realized},
		{name: "cancelled since", since: func(id layout.ID) {
			_, _, err := c.Cancel(ctx, id, "")
			require.NoError(t, err)
		}, reads: 1, state: layout.Realized},
		{name: "used since", since: func(id layout.ID) {
			dependant = submit(Submission{Spec: layout.Spec{Function: "go:g"}, Inputs: []layout.ID{id}})
			require.Equal(t, layout.Blocked, state(dependant))
		}, reads: 1, state: layout.Realized},
	} {
		id := submit(Submission{Spec: layout.Spec{Function: "go:f", MaxRetries: 3}})
		if one.before != nil {
			one.before(id)
		}
		f := claim()
		if one.since != nil {
			one.since(id)
		}
		db.reads.Store(0)
		outcomes, err := r.Finish(ctx, []Completion{{Future: f, Result: &layout.Result{}}})
		require.NoError(t, err, one.name)
		require.Equal(t, []Outcome{Applied}, outcomes, one.name)
		require.Equal(t, one.reads, db.reads.Load(), one.name)
		require.Equal(t, one.state, state(id), one.name)
	}
	require.Equal(t, layout.Ready, state(dependant))

	id := submit(Submission{Spec: layout.Spec{Function: "go:f"}})
	earlier := claim()
	dependant = submit(Submission{Spec: layout.Spec{Function: "go:g"}, Inputs: []layout.ID{id}})
	submit(Submission{Spec: layout.Spec{Function: "go:f"}})
	db.reads.Store(0)
	outcomes, err := r.Finish(ctx, []Completion{{Future: earlier, Result: &layout.Result{}},
		{Future: claim(), Result: &layout.Result{}}})
	require.NoError(t, err)
	require.Equal(t, []Outcome{Applied, Applied}, outcomes)
	require.Equal(t, layout.Ready, state(dependant), "it came between the two claims")
	require.EqualValues(t, 1, db.reads.Load())
}

// TestUnknownEndOfAFreshClaim: the next attempt reads what became of the first one, which it can't meet again.
func TestUnknownEndOfAFreshClaim(t *testing.T) {
	t.Parallel()
	for fault, outcome := range map[faultkv.Fault]Outcome{
		faultkv.UnknownCommitted: Already, faultkv.UnknownLost: Applied, faultkv.UnknownLate: Applied,
	} {
		ctx, faults := context.Background(), faultkv.Wrap(storetest.New(t), faultkv.Options{LateAfter: -1})
		db := &readStore{Database: faults}
		c, err := Open(ctx, db, "fresh", Options{Config: layout.Config{Shards: 1}})
		require.NoError(t, err)
		w := &waker{t, ctx, db, c}
		r := w.register(9, "go:f")
		w.submit(layout.Spec{Function: "go:f"})
		answer, err := r.Claim(ctx, ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
		require.NoError(t, err)
		faults.FailNext(fault, func(tag string) bool { return tag == "futura-finish" })
		outcomes, err := r.Finish(ctx, []Completion{{Future: &answer.Futures[0], Result: &layout.Result{}}})
		require.NoError(t, err)
		require.Equal(t, []Outcome{outcome}, outcomes, fault)
		require.EqualValues(t, 1, db.reads.Load(), "the second attempt")
		faults.Flush()
		counts, err := c.Counts(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 1, counts.Total(layout.Realized), fault)
	}
}
