package owners_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/owners"
)

// owned is a stage whose futures have an owner.
type owned struct{ *modeltest.Stage }

const owner = "batch"

func newOwned(t *testing.T) owned { return owned{modeltest.NewStage(t)} }

func (s owned) submit(n int, change func(i int, spec *layout.Spec)) []layout.ID {
	ids := make([]layout.ID, n)
	for i := range ids {
		ids[i] = s.Submit(func(sub *fdbmodel.Submission) {
			sub.Spec.Owner = owner
			if change != nil {
				change(i, &sub.Spec)
			}
		})
	}
	return ids
}

func (s owned) assign(reason string, ids ...layout.ID) {
	outcomes, err := s.C.Assign(s.Ctx, fdbmodel.Assignment{To: s.Worker.ID(), Reason: reason}, ids)
	require.NoError(s.T, err)
	for _, o := range outcomes {
		require.Equal(s.T, fdbmodel.Applied, o)
	}
}

// fail assigns futures, and has an attempt of each fail, with a wait before the next.
func (s owned) fail(wait time.Duration, ids ...layout.ID) {
	s.assign("y", ids...)
	for _, f := range s.Claim(s.Worker) {
		s.Finish(s.Worker, fdbmodel.Completion{
			Future: &f, RetryIn: &wait, Exception: &layout.Exception{Kind: layout.KindError, Message: "no"},
		})
	}
}

// held returns all held futures of the owner, in pages of some length.
func (s owned) held(limit int) (all []owners.HeldFuture) {
	var cursor []byte
	for {
		page, next, err := owners.Of(s.C).Held(s.Ctx, owner, cursor, limit)
		require.NoError(s.T, err)
		require.LessOrEqual(s.T, len(page), limit)
		if next != nil {
			require.Len(s.T, page, limit, "a page before the last is full")
		}
		all = append(all, page...)
		if cursor = next; cursor == nil {
			return all
		}
	}
}

func TestHeldComesInPagesAndInOrder(t *testing.T) {
	t.Parallel()
	s := newOwned(t)
	ids := s.submit(60, func(i int, spec *layout.Spec) { spec.Priority = uint8(i % 5) })
	s.submit(5, func(_ int, spec *layout.Spec) { spec.Owner = "batch2" })
	s.submit(5, func(_ int, spec *layout.Spec) { spec.Owner = "" })
	s.fail(time.Minute, ids[:4]...)
	s.fail(time.Second, ids[4:8]...)
	want := s.held(1000)
	require.Len(t, want, len(ids))
	var got []layout.ID
	for i, h := range want {
		got = append(got, h.ID)
		at := slices.Index(ids, h.ID)
		require.EqualValues(t, at%5, h.Priority)
		due := map[bool]int64{true: layout.Millis(s.Clock.Now().Add(time.Minute))}[at < 4]
		if at >= 4 && at < 8 {
			due = layout.Millis(s.Clock.Now().Add(time.Second))
		}
		require.Equal(t, [2]any{due, at < 8}, [2]any{h.Due, h.Failed == 1})
		if i > 0 && h.ID.Shard(16) == want[i-1].ID.Shard(16) {
			before := want[i-1]
			require.LessOrEqual(t, cmp.Or(cmp.Compare(before.Failed, h.Failed), cmp.Compare(before.Due, h.Due),
				cmp.Compare(h.Priority, before.Priority)), 0)
		}
	}
	require.ElementsMatch(t, ids, got)
	for _, limit := range []int{1, 2, 7, 59, 60, 61} {
		require.Equal(t, want, s.held(limit), limit)
	}
}

func TestHeldRefusesWhatItCantRead(t *testing.T) {
	t.Parallel()
	s := newOwned(t)
	for _, bad := range [][]byte{{16}, {255, 1}} {
		_, _, err := owners.Of(s.C).Held(s.Ctx, owner, bad, 10)
		require.ErrorIs(t, err, layout.ErrBadCursor)
	}
	held, next, err := owners.Of(s.C).Held(s.Ctx, owner, []byte{15}, 10)
	require.NoError(t, err)
	require.Empty(t, held)
	require.Nil(t, next)
	_, err = kv.Transact(s.Ctx, s.Faults, kv.Retry{}, func(tx kv.Attempt) error {
		tx.Set(append(s.C.Keys().HeldOf(3, owner), 0x15), nil)
		return nil
	})
	require.NoError(t, err)
	_, _, err = owners.Of(s.C).Held(s.Ctx, owner, nil, 10)
	require.ErrorIs(t, err, layout.ErrBadRecord)
}

func TestRetriesAreCounted(t *testing.T) {
	t.Parallel()
	s := newOwned(t)
	o := owners.Of(s.C)
	retries := func(now time.Time) [2]any {
		n, next, err := o.Retries(s.Ctx, owner, now)
		require.NoError(t, err)
		return [2]any{n, next}
	}
	ids := s.submit(12, nil)
	now := s.Clock.Now()
	at := func(wait time.Duration) time.Time { return now.Add(wait).UTC() }
	require.Equal(t, [2]any{0, time.Time{}}, retries(now))
	s.fail(10*time.Second, ids[0], ids[1])
	s.fail(5*time.Second, ids[2], ids[3], ids[4])
	s.fail(20*time.Second, ids[5])
	require.Equal(t, [2]any{6, at(5 * time.Second)}, retries(now))
	require.Equal(t, [2]any{6, at(10 * time.Second)}, retries(at(5*time.Second)))
	require.Equal(t, [2]any{6, at(20 * time.Second)}, retries(at(19*time.Second)))
	require.Equal(t, [2]any{6, time.Time{}}, retries(at(20*time.Second)))
	s.assign("again", ids[0], ids[5])
	require.Equal(t, [2]any{4, at(5 * time.Second)}, retries(now))
}

func TestCountsAreOfTheOwner(t *testing.T) {
	t.Parallel()
	s := newOwned(t)
	ids := s.submit(9, nil)
	s.submit(3, func(_ int, spec *layout.Spec) { spec.Owner = "batch2" })
	s.submit(3, func(_ int, spec *layout.Spec) { spec.Queue = "other" })
	s.assign("one", ids[0], ids[1])
	s.assign("two", ids[2])
	open := func() map[string]int64 {
		open, err := owners.Of(s.C).Open(s.Ctx, owner)
		require.NoError(t, err)
		return open
	}
	counts := func() map[layout.State]int64 {
		counts, err := owners.Of(s.C).Counts(s.Ctx, layout.DefaultQueue, owner)
		require.NoError(t, err)
		for state, n := range counts {
			if n == 0 {
				delete(counts, state)
			}
		}
		return counts
	}
	require.Equal(t, map[string]int64{"one": 2, "two": 1}, open())
	require.Equal(t, map[layout.State]int64{layout.Ready: 9}, counts())
	for _, f := range s.Claim(s.Worker) {
		if f.ID != ids[0] {
			s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Result: &layout.Result{}})
		}
	}
	require.Equal(t, map[string]int64{"one": 1}, open())
	require.Equal(t, map[layout.State]int64{layout.Ready: 6, layout.Claimed: 1, layout.Realized: 2}, counts())
}

// TestAWatchFires when a held future is assigned, ends, and is held again.
func TestAWatchFires(t *testing.T) {
	t.Parallel()
	s := newOwned(t)
	ids := s.submit(2, nil)
	watched := func(do func()) {
		watch, err := owners.Of(s.C).Watch(s.Ctx, owner)
		require.NoError(t, err)
		defer watch.Cancel()
		do()
		select {
		case <-watch.Done():
		case <-time.After(30 * time.Second):
			require.Fail(t, "the watch did not fire")
		}
	}
	var held []fdbmodel.ClaimedFuture
	watched(func() { s.assign("y", ids...) })
	held = s.Claim(s.Worker)
	require.Len(t, held, 2)
	watched(func() { s.Finish(s.Worker, fdbmodel.Completion{Future: &held[0], Result: &layout.Result{}}) })
	watched(func() {
		s.Finish(s.Worker, fdbmodel.Completion{Future: &held[1], Exception: &layout.Exception{Kind: layout.KindError}})
	})
	ended, cancel := context.WithCancel(s.Ctx)
	cancel()
	watch, err := owners.Of(s.C).Watch(ended, owner)
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, watch)
}

func TestDropNeedsThatNothingIsLeft(t *testing.T) {
	t.Parallel()
	s := newOwned(t)
	o, ids := owners.Of(s.C), s.submit(3, nil)
	s.submit(2, func(_ int, spec *layout.Spec) { spec.Owner = "batch2" })
	s.assign("y", ids...)
	for _, f := range s.Claim(s.Worker) {
		require.ErrorIs(t, o.Drop(s.Ctx, layout.DefaultQueue, owner), fdbmodel.ErrTransition)
		s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Result: &layout.Result{}})
	}
	require.ErrorIs(t, o.Drop(s.Ctx, layout.DefaultQueue, owner), fdbmodel.ErrTransition, "ended ones count too")
	_, err := s.C.DiscardMany(s.Ctx, ids)
	require.NoError(t, err)
	require.NotZero(t, s.keysOf(owner))
	require.NoError(t, o.Drop(s.Ctx, layout.DefaultQueue, owner))
	require.Zero(t, s.keysOf(owner))
	require.NotZero(t, s.keysOf("batch2"))
	require.NoError(t, o.Drop(s.Ctx, layout.DefaultQueue, owner), "and again")
}

// keysOf counts the counters of an owner, and its other keys.
func (s owned) keysOf(name string) (n int) {
	k := s.C.Keys()
	ranges := []kv.Range{kv.Prefix(k.Owner(name))}
	for shard := range k.Shards {
		ranges = append(ranges, kv.Prefix(k.CountOwner(shard, layout.DefaultQueue, name)))
	}
	for _, r := range ranges {
		require.NoError(s.T, s.C.EachKey(s.Ctx, r, func(kv.KeyValue) error {
			n++
			return nil
		}))
	}
	return n
}

func TestUnknownResultsOfDrop(t *testing.T) {
	t.Parallel()
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-discard of an owner": func(stage *modeltest.Stage, strike func()) {
			s := owned{stage}
			ids := s.submit(1, nil)
			s.assign("y", ids...)
			held := s.Claim(s.Worker)
			s.Finish(s.Worker, fdbmodel.Completion{Future: &held[0], Result: &layout.Result{}})
			_, err := s.C.DiscardMany(s.Ctx, ids)
			require.NoError(s.T, err)
			strike()
			require.NoError(s.T, owners.Of(s.C).Drop(s.Ctx, layout.DefaultQueue, owner))
			s.Faults.Flush()
			require.Zero(s.T, s.keysOf(owner), fmt.Sprint(ids))
		},
	})
}
