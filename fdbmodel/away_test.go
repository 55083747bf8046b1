package fdbmodel_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// nowhere reads objects from workers that have none.
type nowhere struct{}

func (nowhere) OpenObject(context.Context, string, int64, *fdbmodel.Copy) (fdbmodel.OpenObject, error) {
	return nil, fdbmodel.ErrNotFound
}

// TestReadersWaitForADirectory has a worker leave with its copy: reads say who has it until the
// time is up, and find it lost then. One that comes back meanwhile replaces the copy.
func TestReadersWaitForADirectory(t *testing.T) {
	t.Parallel()
	m := newMixed(t)
	m.c.OfferObjectReader(nowhere{})
	register := func() *fdbmodel.Registration {
		reg, err := m.c.Register(m.ctx, layout.WorkerInfo{Capacity: layout.Resources{Slots: 1}})
		require.NoError(t, err)
		return reg
	}
	ids, err := m.c.DrawIDs(2)
	require.NoError(t, err)
	first := register()
	for _, id := range ids {
		_, err := m.c.Put(m.ctx, fdbmodel.Value{ID: id, Object: "o", Size: 10, Holder: first.ID()})
		require.NoError(t, err)
	}
	require.NoError(t, first.LeaveCopies(m.ctx, ids, m.c.Now().Add(time.Minute)))
	require.NoError(t, register().LeaveCopies(m.ctx, ids, m.c.Now().Add(time.Hour)), "it has none of them")
	err = first.Leave(m.ctx)
	require.NoError(t, err)
	read := func(id layout.ID) error {
		row, err := m.c.Get(m.ctx, id)
		require.NoError(t, err)
		return m.c.OpenResult(id, row.Result).ReadAt(m.ctx, make([]byte, 10), 0)
	}
	for _, id := range ids {
		err := read(id)
		require.ErrorIs(t, err, fdbmodel.ErrUnreachable)
		require.ErrorContains(t, err, string(first.ID()))
	}
	next := register()
	row, err := m.c.Get(m.ctx, ids[1])
	require.NoError(t, err)
	require.NoError(t, next.AddCopy(m.ctx, ids[1], row.Result.Token, false))
	copies, err := m.c.Copies(m.ctx, ids[1])
	require.NoError(t, err)
	require.Len(t, copies, 1)
	require.Equal(t, next.ID(), copies[0].Worker)
	m.clock.Advance(time.Minute)
	require.ErrorIs(t, read(ids[0]), fdbmodel.ErrLost)
	row, err = m.c.Get(m.ctx, ids[0])
	require.NoError(t, err)
	require.Equal(t, layout.Failed, row.State())
}

// TestReadersWaitForSeveralDirectories has two workers leave with a copy each: readers wait for
// either of them, and not for a worker that is alive and has lost its copy.
func TestReadersWaitForSeveralDirectories(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	input, err := s.C.DrawIDs(1)
	require.NoError(t, err)
	_, err = s.C.Put(s.Ctx, fdbmodel.Value{ID: input[0], Object: "o", Size: 10, Holder: s.Worker.ID()})
	require.NoError(t, err)
	leaving, alive := []*fdbmodel.Registration{s.Worker}, secondWorker(s)
	leaving = append(leaving, secondWorker(s))
	for _, worker := range []*fdbmodel.Registration{alive, leaving[1]} {
		require.NoError(t, worker.AddCopy(s.Ctx, input[0], tokenOf(s, input[0]), false))
	}
	for _, worker := range leaving {
		require.NoError(t, worker.LeaveCopies(s.Ctx, input, s.Clock.Now().Add(time.Minute)))
		require.NoError(t, worker.Leave(s.Ctx))
	}
	report := func(missing ...layout.WorkerID) (layout.State, error) {
		return s.C.ReportLost(s.Ctx, input[0], tokenOf(s, input[0]), missing)
	}
	state, err := report()
	require.NoError(t, err, "the third has its copy")
	require.Equal(t, layout.Realized, state)
	_, err = report(alive.ID())
	require.ErrorIs(t, err, fdbmodel.ErrUnreachable)
	s.Clock.Advance(time.Minute)
	state, err = report(alive.ID())
	require.NoError(t, err)
	require.Equal(t, layout.Failed, state)
}

// TestAFutureWaitsForADirectoryThatItMustBeNear has a worker leave with the object that a
// future must be near: it is not lost, and the future runs where it comes back.
func TestAFutureWaitsForADirectoryThatItMustBeNear(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	input, err := s.C.DrawIDs(1)
	require.NoError(t, err)
	_, err = s.C.Put(s.Ctx, fdbmodel.Value{ID: input[0], Object: "o", Size: 10, Holder: s.Worker.ID()})
	require.NoError(t, err)
	require.NoError(t, s.Worker.LeaveCopies(s.Ctx, input, s.Clock.Now().Add(time.Minute)))
	require.NoError(t, s.Worker.Leave(s.Ctx))
	id := s.Submit(func(f *fdbmodel.Submission) {
		f.Inputs, f.Spec.Near, f.Spec.MustBeNear = input, input[0], true
	})
	settle := func() {
		_, _, err := s.C.SettleEdges(s.Ctx)
		require.NoError(t, err)
	}
	settle()
	require.Equal(t, layout.Realized, s.State(input[0]))
	require.Equal(t, layout.Blocked, s.State(id))
	next := secondWorker(s)
	require.NoError(t, next.AddCopy(s.Ctx, input[0], tokenOf(s, input[0]), false))
	settle()
	claimed := s.Claim(next)
	require.Len(t, claimed, 1)
	require.Equal(t, id, claimed[0].ID)
	require.Empty(t, s.Problems())
}
