package results_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/storetest"
)

// TestObjectOfADeadWorker ends a future by a worker that was declared dead and has
// its claims yet: nobody could get the object, so the future runs again.
func TestObjectOfADeadWorker(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Object()
	held := s.Claim(s.Worker)
	modeltest.DeclareDead(t, s.C, s.Worker.ID())
	s.Finish(s.Worker, modeltest.KeepObject(&held[0]))
	require.Equal(t, layout.Ready, s.State(id))
	copies, err := results.Of(s.C).Copies(s.Ctx, id)
	require.NoError(t, err)
	require.Empty(t, copies)
}

func TestCopiesOfAResult(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Object()
	require.Equal(t, 1, s.EndAll(modeltest.KeepObject))
	copies, err := results.Of(s.C).Copies(s.Ctx, id)
	require.NoError(t, err)
	require.Len(t, copies, 1)
	require.True(t, copies[0].Alive)
	require.Equal(t, s.Worker.ID(), copies[0].Worker)
	require.Equal(t, "object of "+id.String(), copies[0].Object)

	info := s.Info()
	info.Address, info.Objects, info.Secret = "", "10.0.0.2:7", "secret"
	second, err := s.C.Register(s.Ctx, info)
	require.NoError(t, err)
	require.NoError(t, results.Of(s.C).AddCopy(s.Ctx, second.ID(), id, s.Token(id), false))
	require.NoError(t, results.Of(s.C).AddCopy(s.Ctx, second.ID(), id, s.Token(id), false), "it has it already")
	require.ErrorIs(t, results.Of(s.C).AddCopy(s.Ctx, second.ID(), id, layout.Token{Worker: "w"}, false),
		fdbmodel.ErrTransition)
	copies, err = results.Of(s.C).Copies(s.Ctx, id)
	require.NoError(t, err)
	require.Len(t, copies, 2)
	require.Equal(t, "10.0.0.2:7", copies[0].Objects)
	require.Equal(t, layout.Secret("secret"), copies[0].Secret)
	require.Contains(t, fmt.Sprintf("%v %#v", copies[0].Secret, copies[0].Secret), "not shown")

	require.NoError(t, results.Of(s.C).AddCopy(s.Ctx, second.ID(), id, s.Token(id), true))
	alone, err := results.Of(s.C).CopyRecords(s.Ctx, []layout.ID{id})
	require.NoError(t, err)
	require.Len(t, alone[id], 1)
	require.Equal(t, second.ID(), alone[id][0].Worker)
	require.NoError(t, results.Of(s.C).AddCopy(s.Ctx, s.Worker.ID(), id, s.Token(id), false))
	s.RequireSound()
	state, err := results.Of(s.C).ReportLost(s.Ctx, id, s.Token(id), []layout.WorkerID{s.Worker.ID()})
	require.NoError(t, err)
	require.Equal(t, layout.Realized, state, "there is another copy")
	copies, err = results.Of(s.C).Copies(s.Ctx, id)
	require.NoError(t, err)
	require.Len(t, copies, 1)
	require.NoError(t, second.Leave(s.Ctx))
	s.RequireResolved()
	state, err = results.Of(s.C).ReportLost(s.Ctx, id, s.Token(id), nil)
	require.NoError(t, err)
	require.Equal(t, layout.Ready, state)
	row, err := s.C.Get(s.Ctx, id)
	require.NoError(t, err)
	require.Equal(t, 1, row.Attempts.Rebuilt)
	s.RequireResolved()
	s.EndAll(modeltest.KeepObject)
	require.NoError(t, s.C.Discard(s.Ctx, id))
	require.Zero(t, s.RequireSound().Futures)
}

func TestLossThatMayNotBeRebuilt(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.AsObject = true })
	s.EndAll(modeltest.KeepObject)
	s.LoseWorker()
	state, err := results.Of(s.C).ReportLost(s.Ctx, id, s.Token(id), nil)
	require.NoError(t, err)
	require.Equal(t, layout.Failed, state)
	row, err := s.C.Get(s.Ctx, id)
	require.NoError(t, err)
	require.Equal(t, layout.KindLost, row.Exception.Kind)
	require.Contains(t, row.Exception.Message, "cannot be rebuilt because its submit does not allow it")
	s.RequireResolved()
	born := s.Submit(func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{id} })
	require.Equal(t, layout.Failed, s.State(born))
}

// TestLostGraphIsRebuilt loses all results of a graph, and touches its end: each
// future that is needed runs again once, whoever finds the loss.
func TestLostGraphIsRebuilt(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 4} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			t.Parallel()
			nodes := storetest.Fewer(100, 20)
			s, random := modeltest.NewStage(t), rand.New(rand.NewPCG(7, uint64(workers)))
			ids := []layout.ID{s.Object()}
			inputs := map[layout.ID][]layout.ID{}
			for len(ids) < nodes {
				// Each takes the one before it, so that all are needed, and some others.
				some := []layout.ID{ids[len(ids)-1]}
				for range random.IntN(3) {
					some = append(some, ids[random.IntN(len(ids))])
				}
				id := s.Object(some...)
				inputs[id], ids = some, append(ids, id)
			}
			last := ids[nodes-1]
			require.Equal(t, nodes, s.EndAll(modeltest.KeepObject))
			for loss := 1; loss <= 2; loss++ {
				s.LoseWorker()
				state, err := results.Of(s.C).ReportLost(s.Ctx, last, s.Token(last), nil)
				require.NoError(t, err)
				require.NotEqual(t, layout.Realized, state)
				team := []*fdbmodel.Registration{s.Worker}
				for len(team) < workers {
					info := s.Info()
					info.Address = ""
					other, err := s.C.Register(s.Ctx, info)
					require.NoError(t, err)
					team = append(team, other)
				}
				require.Equal(t, nodes, rebuildGraph(s, team, inputs), "each once")
				require.Equal(t, layout.Realized, s.State(last))
				for _, id := range ids {
					row, err := s.C.Get(s.Ctx, id)
					require.NoError(t, err)
					require.Equal(t, loss, row.Attempts.Rebuilt)
				}
				s.RequireResolved()
			}
		})
	}
}

// rebuildGraph has workers run what there is in turn: one that finds an input
// without a copy reports the loss and gives its future back. It returns how many
// ran.
func rebuildGraph(s *modeltest.Stage, team []*fdbmodel.Registration, inputs map[layout.ID][]layout.ID) (ran int) {
	for idle := 0; idle < len(team); {
		w := team[0]
		team = append(team[1:], w)
		answer, err := w.Claim(s.Ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 3}, Max: 3})
		require.NoError(s.T, err)
		if idle++; len(answer.Futures) > 0 || s.ResolveLeft() {
			idle = 0
		}
		for i := range answer.Futures {
			f, lost := &answer.Futures[i], false
			for _, input := range inputs[f.ID] {
				copies, err := results.Of(s.C).Copies(s.Ctx, input)
				require.NoError(s.T, err)
				if len(copies) > 0 && copies[0].Alive {
					continue
				}
				row, err := s.C.Get(s.Ctx, input)
				require.NoError(s.T, err)
				if lost = true; row.Result != nil {
					_, err = results.Of(s.C).ReportLost(s.Ctx, input, row.Result.Token, nil)
					require.NoError(s.T, err)
				}
			}
			done := modeltest.KeepObject(f)
			if lost {
				done = fdbmodel.Completion{Future: f, Block: true}
			} else {
				ran++
			}
			outcomes, err := w.Finish(s.Ctx, []fdbmodel.Completion{done})
			require.NoError(s.T, err)
			require.Equal(s.T, fdbmodel.Applied, outcomes[0])
		}
	}
	return ran
}

func TestInputsOfObjectsAreKept(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	input := s.Submit()
	id := s.Object(input)
	s.EndAll(func(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
		if f.Spec.AsObject {
			return modeltest.KeepObject(f)
		}
		return modeltest.Realize(f)
	})
	require.ErrorIs(t, s.C.Discard(s.Ctx, input), fdbmodel.ErrTransition, "the other may have to run again")
	require.NoError(t, s.C.Discard(s.Ctx, id))
	require.NoError(t, s.C.Discard(s.Ctx, input))
	require.Zero(t, s.RequireSound().Futures)
}

func TestObjectsAreNotValues(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	s.Object()
	f := s.Claim(s.Worker)
	_, err := s.Worker.Finish(s.Ctx, []fdbmodel.Completion{{Future: &f[0],
		Result: &layout.Result{Object: "h", Value: []byte("v")}}})
	require.ErrorIs(t, err, layout.ErrBadSpec)
}

// TestCopiesOfDeadWorkersKeepNoOthersAway has as many of them as a result may have.
func TestCopiesOfDeadWorkersKeepNoOthersAway(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Object()
	require.Equal(t, 1, s.EndAll(modeltest.KeepObject))
	info := s.Info()
	info.Address = ""
	var others []*fdbmodel.Registration
	for range read.MaxCopies - 1 {
		other, err := s.C.Register(s.Ctx, info)
		require.NoError(t, err)
		require.NoError(t, results.Of(s.C).AddCopy(s.Ctx, other.ID(), id, s.Token(id), false))
		others = append(others, other)
	}
	last, err := s.C.Register(s.Ctx, info)
	require.NoError(t, err)
	err = results.Of(s.C).AddCopy(s.Ctx, last.ID(), id, s.Token(id), false)
	require.ErrorIs(t, err, fdbmodel.ErrTransition)
	modeltest.DeclareDead(t, s.C, others[0].ID())
	require.NoError(t, results.Of(s.C).AddCopy(s.Ctx, last.ID(), id, s.Token(id), false))
	copies, err := results.Of(s.C).Copies(s.Ctx, id)
	require.NoError(t, err)
	require.Len(t, copies, read.MaxCopies)
	s.RequireSound()
}

// TestACopyThatCantBeReadKeepsNoOtherAway damages the record of one of two copies: the other is read, and without
// that no loss is reported, as the damaged one may be whole.
func TestACopyThatCantBeReadKeepsNoOtherAway(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	all, id := results.Of(s.C), s.Object()
	require.Equal(t, 1, s.EndAll(modeltest.KeepObject))
	copies, err := all.Copies(s.Ctx, id)
	require.NoError(t, err)
	require.NoError(t, all.AddCopy(s.Ctx, s.Second().ID(), id, s.Token(id), false))
	s.Store(copies[0].Key, []byte{0xff})
	copies, err = all.Copies(s.Ctx, id)
	require.True(t, layout.IsUnreadable(err), err)
	require.Len(t, copies, 1)
	row, err := s.C.Get(s.Ctx, id)
	require.NoError(t, err)
	read := func(by results.ObjectReader) error {
		all.OfferReader(by)
		defer all.WithdrawReader(by)
		r := all.Open(id, row.Result)
		defer r.Close()
		return r.ReadAt(s.Ctx, make([]byte, r.Size()), 0)
	}
	require.NoError(t, read(&begun{}))
	err = read(nowhere{})
	require.True(t, layout.IsUnreadable(err), err)
	require.NotErrorIs(t, err, results.ErrLost)
	_, err = all.ReportLost(s.Ctx, id, s.Token(id), []layout.WorkerID{copies[0].Worker})
	require.True(t, layout.IsUnreadable(err), err)
	require.Equal(t, layout.Realized, s.State(id))
}
