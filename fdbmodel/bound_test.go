package fdbmodel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// boundTo has a future run where the result of another one is.
func boundTo(id layout.ID) func(*Submission) {
	return func(s *Submission) { s.Spec.Near, s.Spec.MustBeNear = id, true }
}

func (l *locality) row(id layout.ID) layout.Row {
	l.Helper()
	row, err := l.c.Get(l.ctx, id)
	require.NoError(l, err)
	return row
}

func (l *locality) state(id layout.ID) layout.State {
	l.Helper()
	row := l.row(id)
	return row.State()
}

// waitsFor requires that a future waits for a worker alone.
func (l *locality) waitsFor(id layout.ID, r *Registration) {
	l.Helper()
	row := l.row(id)
	require.Equal(l, layout.Ready, row.State())
	require.Equal(l, r.info.ID, row.Attempts.Assigned)
}

// TestWhatMustBeNearFollowsTheObject has a future wait for the holder of an object
// alone; then for the other one that has a copy; and when that dies as well, for the
// worker that makes the object again.
func TestWhatMustBeNearFollowsTheObject(t *testing.T) {
	t.Parallel()
	l := newLocality(t)
	a, b, c := l.register(1, "go:f"), l.register(1, "go:f"), l.register(1, "go:f")
	early := l.start(a, asObject)
	before := l.submitOne(boundTo(early.ID))
	require.Equal(t, layout.Blocked, l.state(before))
	big := l.keeps(a, early, 10)
	id := l.submitOne(boundTo(big))
	for _, waits := range []layout.ID{before, id} {
		l.waitsFor(waits, a)
	}
	require.Empty(t, claimedBy(l.waker, b, 2))
	require.Len(t, claimedBy(l.waker, a, 2), 2)
	again := l.submitOne(boundTo(big))
	l.addCopy(big, b)
	require.NoError(t, a.Leave(l.ctx))
	for _, waits := range []layout.ID{before, id, again} {
		l.waitsFor(waits, b)
	}
	l.die(b)
	require.Equal(t, layout.Blocked, l.state(again))
	answer, err := c.Claim(l.ctx, ClaimRequest{Free: c.info.Capacity, Max: 1})
	require.NoError(t, err)
	require.Equal(t, big, answer.Futures[0].ID, "it is made again")
	l.keeps(c, &answer.Futures[0], 10)
	for _, waits := range []layout.ID{before, id, again} {
		l.waitsFor(waits, c)
	}
	require.Equal(t, 1, l.row(big).Attempts.Rebuilt)
	answer, err = c.Claim(l.ctx, ClaimRequest{Free: c.info.Capacity, Max: 1})
	require.NoError(t, err)
	failed := answer.Futures[0].ID
	_, err = c.Finish(l.ctx, []Completion{{Future: &answer.Futures[0], RetryIn: new(time.Duration),
		Exception: &layout.Exception{Kind: layout.KindError}}})
	require.NoError(t, err)
	l.waitsFor(failed, c)
}

// die declares a worker dead and takes back what it has.
func (l *locality) die(r *Registration) {
	l.Helper()
	_, err := l.c.ForceReap(l.ctx, r.info.ID)
	require.NoError(l, err)
}

// TestWhatMustBeNearFailsWithTheObject has an object that may not be made again.
func TestWhatMustBeNearFailsWithTheObject(t *testing.T) {
	t.Parallel()
	l := newLocality(t)
	a := l.register(1, "go:f")
	big := l.keeps(a, l.start(a, asObject, func(s *Submission) { s.Spec.AllowReconstruction = false }), 10)
	id := l.submitOne(boundTo(big))
	l.waitsFor(id, a)
	l.die(a)
	row := l.row(id)
	require.Equal(t, layout.Failed, row.State())
	require.Equal(t, layout.KindUpstream, row.Exception.Kind)
	require.Contains(t, row.Exception.Message, "cannot be rebuilt because its submit does not allow it")
}

// TestWhatMustBeNearIsUnreadable has the only copy of an object, or the future that made
// it, be unreadable: the future that must be near it waits, and is resolved once in a call
// and not again at once; the error names both, others go on,
// and it is assigned once the record can be read.
func TestWhatMustBeNearIsUnreadable(t *testing.T) {
	t.Parallel()
	for name, keyOf := range map[string]func(l *locality, big layout.ID) []byte{
		"copy":  func(l *locality, big layout.ID) []byte { return l.copyKey(big) },
		"input": func(l *locality, big layout.ID) []byte { return l.c.keys.State(big, layout.StateResult) },
	} {
		l := newLocality(t)
		a := l.register(1, "go:f")
		big := l.object(a, 10)
		id := l.submitOne(boundTo(big))
		answer, err := a.Claim(l.ctx, ClaimRequest{Free: a.info.Capacity, Max: 1})
		require.NoError(t, err)
		require.Len(t, answer.Futures, 1)
		key := keyOf(l, big)
		good := l.swap(key, []byte{1, 0xc1})
		_, err = a.Finish(l.ctx, []Completion{{Future: &answer.Futures[0], RetryIn: new(time.Duration),
			Exception: &layout.Exception{Kind: layout.KindError}}})
		require.NoError(t, err)
		other := l.submitOne(boundTo(l.object(a, 10)))
		for range 3 {
			_, more, err := l.c.ResolveEdges(l.ctx)
			require.False(t, more, name)
			if name == "copy" {
				require.True(t, layout.IsUnreadable(err), "%s: %v", name, err)
				require.ErrorContains(t, err, "future "+id.String()+" waits for what can't be read: future "+big.String())
			}
		}
		require.Equal(t, layout.Blocked, l.state(id), name)
		l.waitsFor(other, a)
		l.swap(key, good)
		_, _, err = l.c.ResolveEdges(l.ctx)
		require.NoError(t, err)
		l.waitsFor(id, a)
	}
}

// addCopy has a worker get a copy of a result.
func (l *locality) addCopy(id layout.ID, r *Registration) {
	l.Helper()
	row := l.row(id)
	_, err := l.c.Change(l.ctx, kv.Options{}, func(_ kv.Attempt, w *WriteSet) error {
		w.copies.Add(&row, r.info.ID)
		return nil
	})
	require.NoError(l, err)
}

// copyKey is the key of the only copy of a result.
func (l *locality) copyKey(id layout.ID) []byte {
	l.Helper()
	tx := l.db.Begin(kv.Options{})
	defer tx.Cancel()
	copies, err := read.Copies(l.ctx, tx, l.c.keys, id)
	require.NoError(l, err)
	require.Len(l, copies, 1)
	return copies[0].Key
}

// swap sets a key and returns what it had.
func (l *locality) swap(key, value []byte) (had []byte) {
	l.Helper()
	tx := l.db.Begin(kv.Options{})
	defer tx.Cancel()
	had, err := tx.Get(key).Wait(l.ctx)
	require.NoError(l, err)
	tx.Set(key, value)
	_, err = tx.Commit(l.ctx)
	require.NoError(l, err)
	return had
}

// TestWhatMustBeNearAnythingElse has a result that is stored with the cluster, which
// is near to all; and submits that can't be.
func TestWhatMustBeNearAnythingElse(t *testing.T) {
	t.Parallel()
	l := newLocality(t)
	a, b := l.register(1, "go:f"), l.register(1, "go:f")
	stored := l.start(a, asObject)
	_, err := a.Finish(l.ctx, []Completion{{Future: stored, Result: &layout.Result{Value: []byte("v")}}})
	require.NoError(t, err)
	id := l.submitOne(boundTo(stored.ID))
	require.Equal(t, []layout.ID{id}, claimedBy(l.waker, b, 1))
	for what, sub := range map[string]Submission{
		"does not say which": {Spec: layout.Spec{Function: "go:f", MustBeNear: true}},
		"must be one of its inputs": {Inputs: []layout.ID{id},
			Spec: layout.Spec{Function: "go:f", Codec: layout.CodecInputs, Near: stored.ID}},
		"can't be required": {Spec: layout.Spec{Function: "go:f", Requirements: layout.Requirements{
			Labels: map[string]string{layout.LabelNear: "x"}}}},
	} {
		_, err := l.c.Submit(l.ctx, []Submission{sub})
		require.ErrorContains(t, err, what)
	}
	_, err = l.c.Register(l.ctx, layout.WorkerInfo{Capacity: layout.Resources{Slots: 1},
		Labels: map[string]string{layout.LabelNear: "x"}})
	require.ErrorIs(t, err, layout.ErrBadName)
}

// TestReassign moves futures from one worker to another in one transaction, so that
// none of them is free in between.
func TestReassign(t *testing.T) {
	t.Parallel()
	l := newLocality(t)
	a, b, small := l.register(1, "go:f"), l.register(1, "go:f"), l.register(1, "go:g")
	big := l.object(a, 10)
	bound, pool := l.submitOne(boundTo(big)), l.submitOne()
	moved := l.submitOne(func(s *Submission) { s.Assigned = a.info.ID })
	ids := []layout.ID{moved, bound, pool, {1}}
	_, err := l.c.Assign(l.ctx, Assignment{From: a.info.ID, To: small.info.ID}, ids)
	require.ErrorIs(t, err, layout.ErrUnfit)
	_, err = l.c.Assign(l.ctx, Assignment{From: a.info.ID, To: "nobody"}, ids)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = l.c.Assign(l.ctx, Assignment{From: a.info.ID, To: b.info.ID, Reason: string(make([]byte, maxReason+1))}, ids)
	require.ErrorIs(t, err, layout.ErrBadSpec)
	hint := b.RequestHint(ClaimRequest{Free: b.info.Capacity})
	for _, want := range [][]Outcome{{Applied, Refused, Refused, Refused}, {Already, Refused, Refused, Refused}} {
		outcomes, err := l.c.Assign(l.ctx, Assignment{From: a.info.ID, To: b.info.ID, Reason: "why"}, ids)
		require.NoError(t, err)
		require.Equal(t, want, outcomes)
	}
	<-hint.C()
	l.waitsFor(moved, b)
	require.Equal(t, "why", l.row(moved).Attempts.Reason)
	tx := l.db.Begin(kv.Options{})
	defer tx.Cancel()
	mark, err := tx.Get(l.c.keys.Worker(b.info.ID, layout.WorkerAssigned)).Wait(l.ctx)
	require.NoError(t, err)
	require.NotNil(t, mark, "so that a janitor finds what waits for it")
}
