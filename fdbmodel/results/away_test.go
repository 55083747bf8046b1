package results_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/results"
)

// nowhere reads objects from workers that have none.
type nowhere struct{}

func (nowhere) OpenObject(context.Context, string, int64, *results.Copy) (results.OpenObject, error) {
	return nil, fdbmodel.ErrNotFound
}

// reader counts what it is asked for.
type reader struct{ asked int }

func (r *reader) OpenObject(context.Context, string, int64, *results.Copy) (results.OpenObject, error) {
	r.asked++
	return nil, fdbmodel.ErrUnreachable
}

// TestAReaderIsFollowedByTheNext has two clients of a process read objects, and the first one close.
func TestAReaderIsFollowedByTheNext(t *testing.T) {
	t.Parallel()
	all, first, second := results.Of(modeltest.NewStage(t).C), &reader{}, &reader{}
	all.OfferReader(first)
	all.OfferReader(second)
	probe := func() error { return all.Probe(t.Context(), &results.Copy{}) }
	require.Error(t, probe())
	require.Equal(t, [2]int{1, 0}, [2]int{first.asked, second.asked})
	all.WithdrawReader(first)
	require.Error(t, probe())
	require.Equal(t, [2]int{1, 1}, [2]int{first.asked, second.asked})
	all.WithdrawReader(second)
	require.ErrorContains(t, probe(), "reads no objects")
}

// TestReadersWaitForADirectory has a worker leave with its copy: reads say who has it until the
// time is up, and find it lost then. One that comes back meanwhile replaces the copy.
func TestReadersWaitForADirectory(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	results.Of(s.C).OfferReader(nowhere{})
	ids, err := s.C.DrawIDs(2)
	require.NoError(t, err)
	first := s.Second()
	for _, id := range ids {
		_, err := results.Of(s.C).Put(s.Ctx, results.Value{ID: id, Object: "o", Size: 10, Holder: first.ID()})
		require.NoError(t, err)
	}
	require.NoError(t, results.Of(s.C).LeaveCopies(s.Ctx, first.ID(), ids, s.C.Now().Add(time.Minute)))
	require.NoError(t, results.Of(s.C).LeaveCopies(s.Ctx, s.Second().ID(), ids, s.C.Now().Add(time.Hour)),
		"it has none of them")
	err = first.Leave(s.Ctx)
	require.NoError(t, err)
	read := func(id layout.ID) error {
		row, err := s.C.Get(s.Ctx, id)
		require.NoError(t, err)
		return results.Of(s.C).Open(id, row.Result).ReadAt(s.Ctx, make([]byte, 10), 0)
	}
	for _, id := range ids {
		err := read(id)
		require.ErrorIs(t, err, fdbmodel.ErrUnreachable)
		require.ErrorContains(t, err, string(first.ID()))
	}
	next := s.Second()
	row, err := s.C.Get(s.Ctx, ids[1])
	require.NoError(t, err)
	require.NoError(t, results.Of(s.C).AddCopy(s.Ctx, next.ID(), ids[1], row.Result.Token, false))
	copies, err := results.Of(s.C).Copies(s.Ctx, ids[1])
	require.NoError(t, err)
	require.Len(t, copies, 1)
	require.Equal(t, next.ID(), copies[0].Worker)
	s.Clock.Advance(time.Minute)
	require.ErrorIs(t, read(ids[0]), results.ErrLost)
	row, err = s.C.Get(s.Ctx, ids[0])
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
	_, err = results.Of(s.C).Put(s.Ctx, results.Value{ID: input[0], Object: "o", Size: 10, Holder: s.Worker.ID()})
	require.NoError(t, err)
	leaving, alive := []*fdbmodel.Registration{s.Worker}, s.Second()
	leaving = append(leaving, s.Second())
	for _, worker := range []*fdbmodel.Registration{alive, leaving[1]} {
		require.NoError(t, results.Of(s.C).AddCopy(s.Ctx, worker.ID(), input[0], s.Token(input[0]), false))
	}
	for _, worker := range leaving {
		require.NoError(t, results.Of(s.C).LeaveCopies(s.Ctx, worker.ID(), input, s.Clock.Now().Add(time.Minute)))
		require.NoError(t, worker.Leave(s.Ctx))
	}
	report := func(missing ...layout.WorkerID) (layout.State, error) {
		return results.Of(s.C).ReportLost(s.Ctx, input[0], s.Token(input[0]), missing)
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
	_, err = results.Of(s.C).Put(s.Ctx, results.Value{ID: input[0], Object: "o", Size: 10, Holder: s.Worker.ID()})
	require.NoError(t, err)
	require.NoError(t, results.Of(s.C).LeaveCopies(s.Ctx, s.Worker.ID(), input, s.Clock.Now().Add(time.Minute)))
	require.NoError(t, s.Worker.Leave(s.Ctx))
	id := s.Submit(func(f *fdbmodel.Submission) {
		f.Inputs, f.Spec.Near, f.Spec.MustBeNear = input, input[0], true
	})
	resolve := func() {
		_, _, err := s.C.ResolveEdges(s.Ctx)
		require.NoError(t, err)
	}
	resolve()
	require.Equal(t, layout.Realized, s.State(input[0]))
	require.Equal(t, layout.Blocked, s.State(id))
	next := s.Second()
	require.NoError(t, results.Of(s.C).AddCopy(s.Ctx, next.ID(), input[0], s.Token(input[0]), false))
	resolve()
	claimed := s.Claim(next)
	require.Len(t, claimed, 1)
	require.Equal(t, id, claimed[0].ID)
	require.Empty(t, s.Problems())
}

// begun is an object whose beginning can be read.
type begun struct{ read int }

func (b *begun) OpenObject(context.Context, string, int64, *results.Copy) (results.OpenObject, error) {
	return b, nil
}

func (b *begun) ReadAt(_ context.Context, p []byte, _ int64) error { b.read = len(p); return nil }

func (b *begun) Close() {}

// TestAProbeOfAnySize reads no more than a piece, and nothing of a copy whose record has a size that can't be.
func TestAProbeOfAnySize(t *testing.T) {
	t.Parallel()
	all, reader := results.Of(modeltest.NewStage(t).C), &begun{}
	all.OfferReader(reader)
	for size, want := range map[int64]int{-1: 0, 0: 0, 7: 7, 1 << 40: layout.ObjectPiece} {
		require.NoError(t, all.Probe(t.Context(), &results.Copy{CopyRecord: layout.CopyRecord{Size: size}}))
		require.Equal(t, want, reader.read, size)
	}
}
