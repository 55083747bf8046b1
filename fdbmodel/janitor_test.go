package fdbmodel_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/shards"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/storetest"
)

// Limits of a janitor.
const (
	maxExpire = 2048      // futures at which a transaction takes no further list of the done
	orphanAge = time.Hour // of chunks without a future
)

// countedStore counts the transactions that promote and expire.
type countedStore struct {
	kv.Database
	begun atomic.Int64
}

func (s *countedStore) Begin(o kv.Options) kv.Tx {
	if o.Tag == "futura-promote" || o.Tag == "futura-expire" {
		s.begun.Add(1)
	}
	return s.Database.Begin(o)
}

// sharded is a cluster of four shards whose transactions are counted.
type sharded struct {
	mixed
	store *countedStore
}

func newSharded(t *testing.T) *sharded {
	s := &sharded{store: &countedStore{Database: storetest.New(t)}}
	s.mixed = mixed{
		t: t, ctx: context.Background(), db: s.store, clock: clock.NewVirtual(time.UnixMilli(1_900_000_000_000)),
	}
	var err error
	s.c, err = fdbmodel.Open(s.ctx, s.db, "sharded", fdbmodel.Options{Clock: s.clock, Config: layout.Config{Shards: 4}})
	require.NoError(t, err)
	return s
}

// submitTo submits futures to a shard.
func (s *sharded) submitTo(shard, n int, due time.Time) []layout.ID {
	s.t.Helper()
	for {
		ids, err := s.c.DrawIDs(n)
		require.NoError(s.t, err)
		if ids[0].Shard(4) != shard {
			continue
		}
		at := 0
		return s.submit(n, func(sub *fdbmodel.Submission) {
			sub.ID, sub.NotBefore = ids[at], due
			at++
		})
	}
}

func (s *sharded) counted(state layout.State) int64 {
	counts, err := s.c.Counts(s.ctx)
	require.NoError(s.t, err)
	return counts.Total(state)
}

// TestPromotingDealsOutTheBatch has a shard with more due futures than a batch:
// the few of the others do not wait for them.
func TestPromotingDealsOutTheBatch(t *testing.T) {
	t.Parallel()
	s := newSharded(t)
	soon, late := s.c.Now().Add(time.Millisecond), s.c.Now().Add(time.Minute)
	s.submitTo(1, 3*fdbmodel.JanitorBatch, soon)
	for _, shard := range []int{0, 2} {
		s.submitTo(shard, 5, soon.Add(time.Millisecond))
		s.submitTo(shard, 1, late)
	}
	n, next, err := maintenance.Of(s.c).PromoteDue(s.ctx)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, soon, next)
	s.clock.Advance(2 * time.Second)

	n, next, err = maintenance.Of(s.c).PromoteDue(s.ctx)
	require.NoError(t, err)
	require.Equal(t, fdbmodel.JanitorBatch, n)
	require.Equal(t, s.c.Now(), next, "more are due")
	w := s.worker("")
	of := map[int]int{}
	for took := s.claim(w); len(took) > 0; took = s.claim(w) {
		for _, f := range took {
			of[f.ID.Shard(4)]++
		}
	}
	require.Equal(t, map[int]int{0: 5, 1: fdbmodel.JanitorBatch - 10, 2: 5}, of)
	for n > 0 {
		n, next, err = maintenance.Of(s.c).PromoteDue(s.ctx)
		require.NoError(t, err)
	}
	require.Equal(t, late, next)
	require.EqualValues(t, 2, s.counted(layout.Delayed))
	s.checkNewer(0)
}

// TestJanitorLooksAtAllShardsAtOnce counts the transactions of rounds without
// work, and of one with some in each shard.
func TestJanitorLooksAtAllShardsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSharded(t)
	round := func() (promoted, removed int, next [2]time.Time) {
		s.store.begun.Store(0)
		var err error
		promoted, next[0], err = maintenance.Of(s.c).PromoteDue(s.ctx)
		require.NoError(t, err)
		require.EqualValues(t, 1, s.store.begun.Load())
		removed, next[1], err = maintenance.Of(s.c).ExpireDone(s.ctx)
		require.NoError(t, err)
		require.EqualValues(t, 2, s.store.begun.Load())
		return promoted, removed, next
	}
	_, _, next := round()
	require.Zero(t, next, "an empty cluster")
	due := s.c.Now().Add(time.Hour)
	for shard := range 4 {
		ids, err := s.c.CancelMany(s.ctx, s.submitTo(shard, 3, time.Time{}), "")
		require.NoError(t, err)
		require.Len(t, ids, 3)
		s.submitTo(shard, 2, due)
		s.clock.Advance(time.Second)
	}
	expires := s.c.Now().Add(s.c.Config().Retention - 4*time.Second)
	promoted, removed, next := round()
	require.Zero(t, promoted+removed)
	require.Equal(t, [2]time.Time{due, expires}, next)
	s.clock.Advance(s.c.Config().Retention)
	_, removed, next = round()
	require.Equal(t, 12, removed)
	require.Equal(t, s.c.Now(), next[1], "there may be more")
	promoted, removed, next = round()
	require.Zero(t, promoted+removed)
	require.Zero(t, next)
	require.Zero(t, s.counted(layout.Failed))
	require.EqualValues(t, 8, s.counted(layout.Ready))
	s.checkNewer(0)
}

// TestFutureInTwoDoneListsExpiresOnce has a future that ended, was retried, and
// ended again in the same millisecond, each time together with one of another
// shard, so that the lists of two shards name it.
func TestFutureInTwoDoneListsExpiresOnce(t *testing.T) {
	t.Parallel()
	s := newSharded(t)
	twice := s.submitTo(3, 1, time.Time{})[0]
	for shard := range 2 {
		first := s.submitTo(shard, 1, time.Time{})[0]
		_, err := s.c.CancelMany(s.ctx, []layout.ID{first, twice}, "")
		require.NoError(t, err)
		if shard == 0 {
			require.NoError(t, s.c.Retry(s.ctx, twice))
		}
	}
	require.EqualValues(t, 3, s.counted(layout.Failed))
	s.clock.Advance(s.c.Config().Retention)
	removed, _, err := maintenance.Of(s.c).ExpireDone(s.ctx)
	require.NoError(t, err)
	require.Equal(t, 3, removed)
	require.Zero(t, s.counted(layout.Failed))
	s.checkNewer(0)
}

// TestUnreadableDoneEntriesStopNobody puts more of them at the head of a list
// than a scan refills, and none in other shards.
func TestUnreadableDoneEntriesStopNobody(t *testing.T) {
	t.Parallel()
	s := newSharded(t)
	reads := &fdbmodel.CountedRanges{Database: s.store.Database, Tag: "futura-expire"}
	s.store.Database = reads
	for n := range 24 * shards.MaxRefills {
		key := append(s.c.Keys().DoneOf(2), fmt.Sprintf("\x01%04d\x00", n)...)
		s.replace(key, newerRecord)
	}
	_, err := s.c.CancelMany(s.ctx, s.submitTo(1, 3, time.Time{}), "")
	require.NoError(t, err)
	s.clock.Advance(s.c.Config().Retention)
	removed, next, err := maintenance.Of(s.c).ExpireDone(s.ctx)
	require.NoError(t, err)
	require.Equal(t, 3, removed)
	require.Equal(t, s.c.Now(), next)
	removed, next, err = maintenance.Of(s.c).ExpireDone(s.ctx)
	require.NoError(t, err)
	require.Zero(t, removed)
	require.Zero(t, next, "what can't be read does not keep the janitor busy")
	require.EqualValues(t, 2*(4+shards.MaxRefills)+1, reads.Ranges.Load(), "pages, and three neighbours")
}

// TestWhatIsBehindUnreadableEntriesHasItsTurn has more of them than a scan refills before a future of the same
// shard: duties come to it with their next calls, and begin with the first entries again.
func TestWhatIsBehindUnreadableEntriesHasItsTurn(t *testing.T) {
	t.Parallel()
	s := newSharded(t)
	fill := func(of []byte, n int) {
		_, err := s.c.Transact(s.ctx, kv.Options{}, func(tx kv.Attempt) error {
			for i := range n {
				tx.Set(append(slices.Clone(of), fmt.Sprintf("\x01%05d\x00", i)...), newerRecord)
			}
			return nil
		})
		require.NoError(t, err)
	}
	until := func(duty func(context.Context) (int, time.Time, error)) {
		for calls := 1; ; calls++ {
			require.LessOrEqual(t, calls, 3)
			changed, _, err := duty(s.ctx)
			require.NoError(t, err)
			if changed == 1 {
				return
			}
		}
	}
	keys := s.c.Keys()
	fill(keys.DelayedOf(2), 5000)
	fill(keys.LimitsOf(2), 5000)
	fill(keys.DoneOf(2), 1000)
	fill(keys.ResolveOf(2), 5000)
	for range 2 {
		ids := s.submitTo(2, 1, s.c.Now().Add(time.Second))
		s.clock.Advance(time.Minute)
		until(maintenance.Of(s.c).PromoteDue)
		_, _, err := s.c.Cancel(s.ctx, ids[0], "")
		require.NoError(t, err)
		s.submit(1, func(sub *fdbmodel.Submission) {
			sub.ID, sub.Spec.ExpiresAt = layout.Neighbour(ids[0], 1), layout.Millis(s.c.Now())+1
		})
		s.clock.Advance(time.Minute)
		until(maintenance.Of(s.c).EndOverdue)
		s.clock.Advance(s.c.Config().Retention - time.Minute)
		until(maintenance.Of(s.c).ExpireDone)
		s.clock.Advance(time.Minute)
		until(maintenance.Of(s.c).ExpireDone)
		_, err = s.c.Transact(s.ctx, kv.Options{}, func(tx kv.Attempt) error {
			tx.Set(keys.Resolve(ids[0]), layout.Encode(&layout.ResolveRecord{}))
			return nil
		})
		require.NoError(t, err)
		until(func(ctx context.Context) (int, time.Time, error) {
			n, _, err := s.c.ResolveEdges(ctx)
			return n, time.Time{}, err
		})
	}
}

// TestARetriedFutureExpiresByItsLastEnd has futures that ended at the same time;
// two were retried later, and one of these ended again.
func TestARetriedFutureExpiresByItsLastEnd(t *testing.T) {
	t.Parallel()
	s := newSharded(t)
	ids := s.submitTo(1, 3, time.Time{})
	_, err := s.c.CancelMany(s.ctx, ids, "")
	require.NoError(t, err)
	s.clock.Advance(time.Minute)
	_, err = s.c.RetryMany(s.ctx, ids[1:])
	require.NoError(t, err)
	_, _, err = s.c.Cancel(s.ctx, ids[2], "")
	require.NoError(t, err)
	for i, wait := range []time.Duration{s.c.Config().Retention - time.Minute, time.Minute} {
		s.clock.Advance(wait - time.Millisecond)
		removed, next, err := maintenance.Of(s.c).ExpireDone(s.ctx)
		require.NoError(t, err)
		require.Zero(t, removed)
		require.Equal(t, s.c.Now().Add(time.Millisecond), next)
		s.clock.Advance(time.Millisecond)
		removed, _, err = maintenance.Of(s.c).ExpireDone(s.ctx)
		require.NoError(t, err)
		require.Equal(t, 1, removed)
		require.EqualValues(t, 1-i, s.counted(layout.Failed))
		require.EqualValues(t, 1, s.counted(layout.Ready))
	}
	s.checkNewer(0)
}

// TestArgumentsAheadOfTheirSubmitAreKept sweeps before and after the time that a
// submit may take.
func TestArgumentsAheadOfTheirSubmitAreKept(t *testing.T) {
	t.Parallel()
	s := newSharded(t)
	ids, err := s.c.DrawIDs(1)
	require.NoError(t, err)
	_, err = s.c.PutArgs(s.ctx, ids[0], make([]byte, layout.ChunkSize+1))
	require.NoError(t, err)
	for _, wait := range []struct {
		time    time.Duration
		removed int
	}{{0, 0}, {orphanAge - time.Second, 0}, {2 * time.Second, 1}, {0, 0}} {
		s.clock.Advance(wait.time)
		_, removed, err := maintenance.Of(s.c).SweepChunks(s.ctx, ids[0].Shard(4), nil)
		require.NoError(t, err)
		require.Equal(t, wait.removed, removed)
	}
}

// TestExpiryIsBounded has an entry in each shard; two of them hold more futures
// than one transaction removes.
func TestExpiryIsBounded(t *testing.T) {
	t.Parallel()
	s := newSharded(t)
	ids := make([]layout.ID, maxExpire/2+1)
	for i := range ids {
		ids[i] = layout.BatchItemID("b", i)
	}
	for shard := range 4 {
		s.replace(tuple.AppendStamp(s.c.Keys().DoneOf(shard), [10]byte{}, 0), layout.Encode(&layout.DoneEntry{
			At: layout.Millis(s.c.Now()), IDs: layout.PackIDs(ids),
		}))
	}
	s.clock.Advance(s.c.Config().Retention)
	for _, left := range []int{2, 0} {
		_, next, err := maintenance.Of(s.c).ExpireDone(s.ctx)
		require.NoError(t, err)
		require.Equal(t, s.c.Now(), next)
		entries := 0
		for shard := range 4 {
			require.NoError(t, s.c.EachKey(s.ctx, kv.Prefix(s.c.Keys().DoneOf(shard)), func(kv.KeyValue) error {
				entries++
				return nil
			}))
		}
		require.Equal(t, left, entries)
	}
}

// TestOwnedFuturesThatLapse: the janitor removes them as others, and leaves those to their owner that do not lapse. So
// does who discards futures by hand.
func TestOwnedFuturesThatLapse(t *testing.T) {
	t.Parallel()
	a := newSharded(t)
	made, err := a.c.Submit(a.ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f", Owner: "b"}},
		{Spec: layout.Spec{Function: "go:f", Owner: "b", Lapses: true}},
		{Spec: layout.Spec{Function: "go:f", Owner: "b", Lapses: true}}})
	require.NoError(t, err)
	kept, lapses, discarded := made[0].ID, made[1].ID, made[2].ID
	n, err := a.c.CancelMany(a.ctx, []layout.ID{kept, lapses, discarded}, "")
	require.NoError(t, err)
	require.Len(t, n, 3)
	require.ErrorIs(t, a.c.Discard(a.ctx, kept), fdbmodel.ErrTransition)
	require.NoError(t, a.c.Discard(a.ctx, discarded))
	a.checkNewer(0)
	removed, next, err := maintenance.Of(a.c).ExpireDone(a.ctx)
	require.NoError(t, err)
	require.Zero(t, removed)
	require.Equal(t, a.c.Now().Add(a.c.Config().Retention), next)
	a.clock.Advance(a.c.Config().Retention)
	removed, _, err = maintenance.Of(a.c).ExpireDone(a.ctx)
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	a.checkNewer(0)
	_, err = a.c.Get(a.ctx, lapses)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	_, err = a.c.Get(a.ctx, kept)
	require.NoError(t, err)
	_, err = a.c.Submit(a.ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f", Lapses: true}}})
	require.ErrorIs(t, err, layout.ErrBadSpec)
}
