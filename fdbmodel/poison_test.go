package fdbmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// forceReap declares a worker dead and takes back what it holds.
func forceReap(s *modeltest.Stage, id layout.WorkerID) {
	modeltest.DeclareDead(s.T, s.C, id)
	_, err := s.C.ReapClaims(s.Ctx, id)
	require.NoError(s.T, err)
}

// TestOnlyTheMostSuspiciousIsCharged has a worker die with futures that differ in
// how many workers died with them, some of which it had begun.
func TestOnlyTheMostSuspiciousIsCharged(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	var ids [3]layout.ID // by deaths
	for deaths := 2; deaths >= 0; deaths-- {
		// The less suspicious ones come first in the order of keys.
		ids[deaths] = s.Submit(func(sub *fdbmodel.Submission) { sub.ID = layout.ID{byte(1 + deaths)} })
		if deaths > 0 {
			w, err := s.C.Register(s.Ctx, layout.WorkerInfo{Functions: []string{"go:f"},
				Capacity: layout.Resources{Slots: 8}})
			require.NoError(t, err)
			require.Len(t, s.Claim(w), 3-deaths)
			forceReap(s, w.ID())
			s.Clock.Advance(time.Minute)
			_, _, err = maintenance.Of(s.C).PromoteDue(s.Ctx)
			require.NoError(t, err)
		}
	}
	idle := s.Submit()
	held := map[layout.ID]*fdbmodel.ClaimedFuture{}
	for _, f := range s.Claim(s.Worker) {
		held[f.ID] = &f
	}
	for deaths, id := range ids {
		require.Equal(t, deaths, held[id].Attempts.Suspicion())
		require.NoError(t, s.Worker.Begin(s.Ctx, held[id]))
	}
	forceReap(s, s.Worker.ID())
	for deaths, id := range append(ids[:], idle) {
		row, err := s.C.Get(s.Ctx, id)
		require.NoError(t, err)
		require.Equal(t, id == ids[2], row.Attempts.Crashes == 1, "%d deaths", deaths)
		require.Equal(t, held[id].Attempts.Deaths.Len()+1, row.Attempts.Deaths.Len())
	}
}

// TestARunThatEndedIsNotCharged: a later claim of the same worker may take the
// future, and not have begun it.
func TestARunThatEndedIsNotCharged(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	for range 2 {
		held := s.Claim(s.Worker)
		require.NoError(t, s.Worker.Begin(s.Ctx, &held[0]))
		require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, fdbmodel.Completion{Future: &held[0], Relinquish: true}))
	}
	require.Len(t, s.Claim(s.Worker), 1)
	forceReap(s, s.Worker.ID())
	row, err := s.C.Get(s.Ctx, id)
	require.NoError(t, err)
	require.Equal(t, layout.Deaths{{Worker: s.Worker.ID()}}, row.Attempts.Deaths)
	require.Zero(t, row.Attempts.Crashes)
}

// TestWhoIsAbsolvedIsNotCharged: the death counts as a crash of what was begun again alone.
func TestWhoIsAbsolvedIsNotCharged(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	ids := []layout.ID{s.Submit(), s.Submit()}
	held := s.Claim(s.Worker)
	require.Len(t, held, 2)
	for i := range held {
		require.NoError(t, s.Worker.Begin(s.Ctx, &held[i]))
		require.NoError(t, s.Worker.Absolve(s.Ctx, &held[i]))
		if held[i].ID == ids[1] {
			require.NoError(t, s.Worker.Begin(s.Ctx, &held[i]))
		}
	}
	forceReap(s, s.Worker.ID())
	for n, id := range ids {
		row, err := s.C.Get(s.Ctx, id)
		require.NoError(t, err)
		require.Equal(t, n, row.Attempts.Crashes)
		require.Equal(t, 1, row.Attempts.Suspicion())
	}
	require.ErrorIs(t, s.Worker.Absolve(s.Ctx, &held[0]), fdbmodel.ErrReaped)
}

// TestAbsolvingAnEarlierRunChangesNothing: the worker has the future again, and it runs.
func TestAbsolvingAnEarlierRunChangesNothing(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	earlier := s.Claim(s.Worker)
	require.NoError(t, s.Worker.Begin(s.Ctx, &earlier[0]))
	s.Finish(s.Worker, fdbmodel.Completion{Future: &earlier[0], Relinquish: true})
	held := s.Claim(s.Worker)
	require.NoError(t, s.Worker.Begin(s.Ctx, &held[0]))
	require.NoError(t, s.Worker.Absolve(s.Ctx, &earlier[0]))
	forceReap(s, s.Worker.ID())
	row, err := s.C.Get(s.Ctx, id)
	require.NoError(t, err)
	require.Equal(t, 1, row.Attempts.Crashes)
}

// TestAWorkerThatComesBackUndoesItsDeath: for what it still thinks that it holds,
// and for what it tried to end meanwhile.
func TestAWorkerThatComesBackUndoesItsDeath(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	ids := []layout.ID{s.Submit(), s.Submit(), s.Submit()}
	held := s.Claim(s.Worker)
	require.Len(t, held, 3)
	for i := range held {
		require.NoError(t, s.Worker.Begin(s.Ctx, &held[i]))
	}
	forceReap(s, s.Worker.ID())
	require.Equal(t, fdbmodel.Lost, s.Finish(s.Worker, fdbmodel.Completion{Future: &held[0], Result: &layout.Result{}}))
	other, err := s.C.Register(s.Ctx, s.Info())
	require.NoError(t, err)
	s.Clock.Advance(time.Minute)
	_, _, err = maintenance.Of(s.C).PromoteDue(s.Ctx)
	require.NoError(t, err)
	again := s.Claim(other)
	require.Len(t, again, 3)
	require.Equal(t, fdbmodel.Applied, s.Finish(other, fdbmodel.Completion{Future: &again[2], Result: &layout.Result{}}))
	require.NoError(t, s.Worker.Leave(s.Ctx))
	for _, id := range ids {
		row, err := s.C.Get(s.Ctx, id)
		require.NoError(t, err)
		if id == again[2].ID {
			require.Equal(t, 1, row.Attempts.Crashes, "it has ended")
			continue
		}
		require.Equal(t, layout.Claimed, row.State())
		require.Zero(t, row.Attempts)
	}
}

// TestALeaveForgetsWhatHadBegun interrupts a leave after the worker has given its
// futures back: nothing says that it runs them.
func TestALeaveForgetsWhatHadBegun(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	held := s.Claim(s.Worker)
	require.NoError(t, s.Worker.Begin(s.Ctx, &held[0]))
	require.NoError(t, s.Worker.GiveBack(s.Ctx))
	require.Equal(t, layout.Ready, s.State(id))
	modeltest.RequireSound(t, s.C)
	require.NoError(t, s.Worker.Leave(s.Ctx))
}
