package circles_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/circles"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// ring is a stage on which functions await others.
type ring struct {
	*modeltest.Stage
	other  *fdbmodel.Registration
	awaits map[*fdbmodel.Registration][]layout.Await
}

func newRing(t *testing.T) *ring {
	r := &ring{Stage: modeltest.NewStage(t), awaits: map[*fdbmodel.Registration][]layout.Await{}}
	info := r.Info()
	info.Address = "10.0.0.2:1"
	var err error
	r.other, err = r.C.Register(r.Ctx, info)
	require.NoError(t, err)
	for kind, width := range map[string]int{"narrow": 1, "wide": 2} {
		require.NoError(t, lanes.Of(r.C).SetKind(r.Ctx, kind, layout.LaneKind{Width: width}))
	}
	return r
}

func in(kind, key string) func(*fdbmodel.Submission) {
	return func(s *fdbmodel.Submission) { s.Spec.Lane = layout.Lane{Kind: kind, Key: key} }
}

func after(ids ...layout.ID) func(*fdbmodel.Submission) {
	return func(s *fdbmodel.Submission) { s.Inputs = ids }
}

// run submits a future, and has a worker claim it.
func (r *ring) run(w *fdbmodel.Registration, change ...func(*fdbmodel.Submission)) layout.ID {
	id := r.Submit(change...)
	claimed := r.Claim(w)
	require.Len(r.T, claimed, 1)
	require.Equal(r.T, id, claimed[0].ID)
	return id
}

// await has a function await count futures, of which for is one.
func (r *ring) await(w *fdbmodel.Registration, id, of layout.ID, count int, since int64) {
	r.awaits[w] = append(r.awaits[w], layout.Await{ID: id, For: of, Count: count, Since: since})
	r.beat(w)
}

func (r *ring) beat(w *fdbmodel.Registration) {
	_, err := w.Heartbeat(r.Ctx, layout.Heartbeat{Awaits: r.awaits[w]})
	require.NoError(r.T, err)
}

func (r *ring) through(id layout.ID) circles.Circle {
	waits, err := circles.Read(r.Ctx, r.C)
	require.NoError(r.T, err)
	circle, err := waits.Through(r.Ctx, id)
	require.NoError(r.T, err)
	return circle
}

func idsOf(c circles.Circle) (ids []layout.ID) {
	for i := range c {
		ids = append(ids, c[i].ID)
	}
	return ids
}

// TestTwoInLanesOfEachOther is the circle of two actors whose methods await each other.
func TestTwoInLanesOfEachOther(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	a, b := r.run(r.Worker, in("narrow", "a")), r.run(r.other, in("narrow", "b"))
	toB, toA := r.Submit(in("narrow", "b")), r.Submit(in("narrow", "a"))
	r.await(r.Worker, a, toB, 1, 10)
	require.Empty(t, r.through(a), "the other one runs")
	r.await(r.other, b, toA, 1, 20)
	circle := r.through(a)
	require.Equal(t, []layout.ID{a, b}, idsOf(circle))
	require.Equal(t, []layout.ID{b, a}, idsOf(r.through(b)))
	require.Equal(t, b, circle.Youngest())
	require.Equal(t, b, r.through(b).Youngest())
	require.Contains(t, circle.String(), "in lane narrow/a) awaits "+toB.String()+", for which "+b.String())

	require.False(t, r.through(a).Lasts(circle), "of the same heartbeats")
	r.beat(r.Worker)
	require.False(t, r.through(a).Lasts(circle), "the heartbeat of the other one is as old")
	r.beat(r.other)
	require.True(t, r.through(a).Lasts(circle))
	require.False(t, r.through(a).Lasts(nil))
	r.awaits[r.other][0].Since++
	r.beat(r.Worker)
	r.beat(r.other)
	require.False(t, r.through(a).Lasts(circle), "the other wait is another one")

	r.Finish(r.Worker, r.done(r.Worker, a))
	require.Empty(t, r.through(b), "what it waited for has got in")
	require.Empty(t, r.through(a))
}

// done is the end of a future that a worker runs.
func (r *ring) done(w *fdbmodel.Registration, id layout.ID) fdbmodel.Completion {
	row, err := r.C.Get(r.Ctx, id)
	require.NoError(r.T, err)
	return fdbmodel.Completion{Future: &fdbmodel.ClaimedFuture{ID: id, Spec: row.Spec, Token: layout.Token{
		Worker: w.ID(), Sequence: row.Claim.Sequence}}}
}

// TestCirclesThroughOthers go through plain functions, inputs and several lanes.
func TestCirclesThroughOthers(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	a, plain, c := r.run(r.Worker, in("narrow", "a")), r.run(r.other), r.run(r.other, in("narrow", "c"))
	toC := r.Submit(in("narrow", "c"))
	blocked := r.Submit(after(toC))
	toA := r.Submit(in("narrow", "a"))
	r.await(r.Worker, a, plain, 1, 30)
	r.await(r.other, plain, blocked, 1, 20)
	require.Empty(t, r.through(a))
	r.await(r.other, c, toA, 1, 10)
	require.Equal(t, []layout.ID{a, plain, c}, idsOf(r.through(a)))
	require.Equal(t, []layout.ID{plain, c, a}, idsOf(r.through(plain)))
	require.Equal(t, a, r.through(c).Youngest())
}

// TestWaitsThatMayEnd are not circles.
func TestWaitsThatMayEnd(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	a, b := r.run(r.Worker, in("wide", "a")), r.run(r.other, in("wide", "b"))
	r.run(r.other, in("wide", "a"))
	r.run(r.other, in("wide", "b"))
	r.await(r.Worker, a, r.Submit(in("wide", "b")), 1, 1)
	r.await(r.other, b, r.Submit(in("wide", "a")), 1, 1)
	require.Empty(t, r.through(a), "each lane has another slot")

	x, y := r.run(r.Worker), r.run(r.other)
	r.await(r.Worker, x, y, 2, 1)
	r.await(r.other, y, x, 1, 1)
	require.Empty(t, r.through(y), "one awaits another future as well")
	require.Empty(t, r.through(x))

	gone := r.run(r.other)
	r.await(r.other, gone, layout.ID{15: 1}, 1, 1)
	require.Empty(t, r.through(gone), "of no future")
	require.Empty(t, r.through(layout.ID{15: 1}))

	lost, held := r.run(r.Worker), r.run(r.other)
	r.await(r.Worker, lost, held, 1, 1)
	r.await(r.other, held, lost, 1, 1)
	require.Len(t, r.through(held), 2)
	r.relinquish(r.Worker, lost)
	require.Empty(t, r.through(held), "the heartbeat is of a claim that is over")
	require.Empty(t, r.through(lost))
	require.Equal(t, lost, r.Claim(r.other)[0].ID)
	require.Empty(t, r.through(held), "another worker has it, which waits for nothing yet")
	require.Empty(t, r.through(lost))
}

func (r *ring) relinquish(w *fdbmodel.Registration, id layout.ID) {
	done := r.done(w, id)
	done.Relinquish = true
	require.Equal(r.T, fdbmodel.Applied, r.Finish(w, done))
}

// TestACircleBesideWhatCannotBeRead is found all the same.
func TestACircleBesideWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	a, b := r.run(r.Worker, in("narrow", "a")), r.run(r.other, in("narrow", "b"))
	damaged := r.run(r.other)
	r.await(r.Worker, a, r.Submit(in("narrow", "b")), 1, 1)
	r.await(r.other, b, r.Submit(in("narrow", "a")), 1, 1)
	r.await(r.other, damaged, a, 1, 1)
	_, err := r.C.Transact(r.Ctx, kv.Options{}, func(tx kv.Attempt) error {
		tx.Set(r.C.Keys().Spec(damaged), []byte("damaged"))
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []layout.ID{a, b}, idsOf(r.through(a)))
	require.Empty(t, r.through(damaged))
}

// TestALongChainIsCut has circles through more futures than a search follows, and through fewer.
func TestALongChainIsCut(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	for i, inputs := range []int{200, 300} {
		top, end := r.run(r.Worker), r.run(r.other)
		last := end
		for range inputs {
			last = r.Submit(after(last))
		}
		r.await(r.Worker, top, last, 1, 1)
		r.await(r.other, end, top, 1, 2)
		require.Len(t, r.through(top), []int{2, 0}[i])
	}
}

// TestACircleThroughALaneOfARemovedKind: such a lane has a width of 1.
func TestACircleThroughALaneOfARemovedKind(t *testing.T) {
	t.Parallel()
	r := newRing(t)
	require.NoError(t, lanes.Of(r.C).SetKind(r.Ctx, "removed", layout.LaneKind{Width: 9}))
	later := func(s *fdbmodel.Submission) { s.NotBefore = r.C.Now().Add(time.Hour) }
	a, toA := r.Submit(in("removed", "a"), later), r.Submit(in("removed", "a"), later)
	require.NoError(t, lanes.Of(r.C).RemoveKind(r.Ctx, "removed"))
	require.NoError(t, r.C.Retry(r.Ctx, a))
	require.Len(t, r.Claim(r.Worker), 1)
	require.NoError(t, r.C.Retry(r.Ctx, toA))
	plain := r.run(r.other)
	r.await(r.Worker, a, plain, 1, 10)
	r.await(r.other, plain, toA, 1, 20)
	require.Equal(t, []layout.ID{a, plain}, idsOf(r.through(a)))
}
