package fdbmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/batches"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/owners"
)

// chunks returns the chunks of the batch g by their ids.
func (a *assigning) chunks() map[string]layout.BatchChunk {
	list, err := batches.Of(a.c).Chunks(a.ctx, "g")
	require.NoError(a, err)
	byID := map[string]layout.BatchChunk{}
	for _, c := range list {
		byID[c.ID] = c
	}
	return byID
}

// give makes a chunk of items of the batch g.
func (a *assigning) give(id string, w *fdbmodel.Registration, ids []layout.ID) {
	chunk := layout.BatchChunk{Worker: w.ID(), ID: id, Items: len(ids), Status: 1}
	_, added, err := batches.Of(a.c).AssignChunk(a.ctx, "g", chunk, ids, modeltest.AnyBatch)
	require.NoError(a, err)
	require.Equal(a, len(ids), added)
}

// TestWhatHasNotBegunMoves moves items of two chunks of one worker: those that it has begun
// stay, as do those that the other one can't run, or has failed, and strangers.
func TestWhatHasNotBegunMoves(t *testing.T) {
	t.Parallel()
	a := newAssigning(t)
	first, second := a.register(), a.register()
	require.NoError(t, batches.Of(a.c).Create(a.ctx, &layout.BatchRecord{ID: "g", Template: []byte("{}")}))
	ids := a.submit(8, true)
	a.give("failed", second, ids[:1])
	zero := time.Duration(0)
	a.finish(second, fdbmodel.Completion{Future: &a.claim(second, 1)[0], RetryIn: &zero,
		Exception: &layout.Exception{Kind: layout.KindError}})
	other, err := a.c.Submit(a.ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f", Owner: "h"}}})
	require.NoError(t, err)
	a.assign(first, []layout.ID{other[0].ID})
	a.give("one", first, ids[:4])
	begun := a.claim(first, 1)[0]
	a.give("two", first, ids[4:])

	waiting, err := batches.Of(a.c).Waiting(a.ctx, "g", layout.DefaultQueue, first.ID(), 100)
	require.NoError(t, err)
	require.NotContains(t, waiting, begun.ID)
	require.NotContains(t, waiting, other[0].ID)
	few, err := batches.Of(a.c).Waiting(a.ctx, "g", layout.DefaultQueue, first.ID(), 2)
	require.NoError(t, err)
	require.Equal(t, waiting[:2], few, "the last come first")

	to := layout.BatchChunk{Worker: second.ID(), ID: "new", Status: 1, CreatedAt: 5, Peer: "p"}
	move := func(c layout.BatchChunk, ids ...layout.ID) int {
		there, err := batches.Of(a.c).Move(a.ctx, "g", first.ID(), c, ids, modeltest.AnyBatch)
		require.NoError(t, err)
		a.check()
		return there
	}
	require.Zero(t, move(to, begun.ID, other[0].ID, ids[0], layout.ID{}))
	require.NotContains(t, a.chunks(), "new", "nothing moved")
	all := append(ids[1:7:7], begun.ID, ids[1])
	want := 6
	if begun.ID != ids[0] {
		want-- // it is among them
	}
	require.Equal(t, want, move(to, all...))
	require.Equal(t, want, move(to, all...), "they are there")
	chunks := a.chunks()
	require.Equal(t, layout.BatchChunk{ID: "new", Worker: second.ID(), Status: 1, CreatedAt: 5, Peer: "p", Items: want},
		chunks["new"])
	require.Equal(t, 8-want, chunks["one"].Items+chunks["two"].Items)
	require.Equal(t, want, chunks["one"].Moved+chunks["two"].Moved)
	require.Equal(t, 4, chunks["two"].Moved+chunks["two"].Items)
	open, err := owners.Of(a.c).Open(a.ctx, "g")
	require.NoError(t, err)
	require.Equal(t, int64(want), open["new"])

	for _, c := range []struct {
		batch string
		to    layout.BatchChunk
		may   bool
		want  error
	}{
		{"none", to, true, fdbmodel.ErrNotFound}, {"g", to, false, fdbmodel.ErrTransition},
		{"g", layout.BatchChunk{ID: "x", Worker: "nobody"}, true, fdbmodel.ErrNotFound},
	} {
		_, err := batches.Of(a.c).Move(a.ctx, c.batch, first.ID(), c.to, ids[7:],
			func(*layout.BatchRecord) bool { return c.may })
		require.ErrorIs(t, err, c.want)
	}
	_, err = batches.Of(a.c).Move(a.ctx, "g", first.ID(), to, make([]layout.ID, fdbmodel.MaxAssign+1), modeltest.AnyBatch)
	require.ErrorIs(t, err, layout.ErrBadSpec)
	small, err := a.c.Register(a.ctx, layout.WorkerInfo{Functions: []string{"go:other"},
		Capacity: layout.Resources{Slots: 1}})
	require.NoError(t, err)
	require.Zero(t, move(layout.BatchChunk{ID: "small", Worker: small.ID()}, ids[7]), "it does not know the function")
}

// TestMovingUnderUnknownCommits counts what has moved once.
func TestMovingUnderUnknownCommits(t *testing.T) {
	t.Parallel()
	for _, fault := range []faultkv.Fault{faultkv.UnknownCommitted, faultkv.UnknownLost, faultkv.UnknownLate} {
		s := modeltest.NewStage(t)
		require.NoError(t, batches.Of(s.C).Create(s.Ctx, &layout.BatchRecord{ID: "g", Template: []byte("{}")}))
		id := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Owner = "g" })
		from := layout.BatchChunk{Worker: s.Worker.ID(), ID: "from", Items: 1}
		_, _, err := batches.Of(s.C).AssignChunk(s.Ctx, "g", from, []layout.ID{id}, modeltest.AnyBatch)
		require.NoError(t, err)
		second := s.Second()
		s.Faults.FailNext(fault, nil)
		to := layout.BatchChunk{Worker: second.ID(), ID: "to"}
		there, err := batches.Of(s.C).Move(s.Ctx, "g", s.Worker.ID(), to, []layout.ID{id}, modeltest.AnyBatch)
		require.NoError(t, err)
		s.Faults.Flush()
		require.Equal(t, 1, int(s.Faults.Counts().Injected[fault]), "the fault did not happen")
		require.Equal(t, 1, there)
		chunks, err := batches.Of(s.C).Chunks(s.Ctx, "g")
		require.NoError(t, err)
		from.Items, from.Moved, to.Items = 0, 1, 1
		require.Equal(t, []layout.BatchChunk{from, to}, chunks)
	}
}

// TestChunksCountWhatTheirWorkerLoses has a worker die with an item that runs, one that waits
// and one that has ended, and another leave.
func TestChunksCountWhatTheirWorkerLoses(t *testing.T) {
	t.Parallel()
	a := newAssigning(t)
	dies, leaves, stays := a.register(), a.register(), a.register()
	require.NoError(t, batches.Of(a.c).Create(a.ctx, &layout.BatchRecord{ID: "g", Template: []byte("{}")}))
	ids := a.submit(9, true)
	for i, w := range []*fdbmodel.Registration{dies, leaves, stays} {
		a.give([]string{"dies", "leaves", "stays"}[i], w, ids[3*i:3*i+3])
		ran := a.claim(w, 2)
		a.finish(w, fdbmodel.Completion{Future: &ran[0], Result: &layout.Result{}})
	}
	_, err := a.c.ForceReap(a.ctx, dies.ID())
	require.NoError(t, err)
	require.NoError(t, leaves.Leave(a.ctx))
	a.check()
	chunks := a.chunks()
	for id, lost := range map[string]int{"dies": 2, "leaves": 2, "stays": 0} {
		require.Equal(t, 3, chunks[id].Items)
		require.Equal(t, lost, chunks[id].Lost, id)
	}
}

// TestUnknownResultsOfLosses counts once what a worker loses that dies or leaves.
func TestUnknownResultsOfLosses(t *testing.T) {
	t.Parallel()
	loses := func(lose func(s *modeltest.Stage, strike func())) func(s *modeltest.Stage, strike func()) {
		return func(s *modeltest.Stage, strike func()) {
			require.NoError(s.T, batches.Of(s.C).Create(s.Ctx, &layout.BatchRecord{ID: "g", Template: []byte("{}")}))
			owned := func(sub *fdbmodel.Submission) { sub.Spec.Owner = "g" }
			ids := []layout.ID{s.Submit(owned), s.Submit(owned)}
			chunk := layout.BatchChunk{Worker: s.Worker.ID(), ID: "c", Items: len(ids)}
			_, _, err := batches.Of(s.C).AssignChunk(s.Ctx, "g", chunk, ids, modeltest.AnyBatch)
			require.NoError(s.T, err)
			lose(s, strike)
			s.Faults.Flush()
			chunks, err := batches.Of(s.C).Chunks(s.Ctx, "g")
			require.NoError(s.T, err)
			require.Len(s.T, chunks, 1)
			require.Equal(s.T, len(ids), chunks[0].Lost)
		}
	}
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-reap with chunks": loses(func(s *modeltest.Stage, strike func()) {
			_, err := s.Worker.Claim(s.Ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
			require.NoError(s.T, err)
			modeltest.DeclareDead(s.T, s.C, s.Worker.ID())
			strike()
			_, err = s.C.ReapClaims(s.Ctx, s.Worker.ID())
			require.NoError(s.T, err)
		}),
		"futura-leave with chunks": loses(func(s *modeltest.Stage, strike func()) {
			strike()
			require.NoError(s.T, s.Worker.Leave(s.Ctx))
		}),
	})
}
