package lanes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/fit"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// laneStage is a stage with a kind of lanes.
type laneStage struct {
	*modeltest.Stage
	L *lanes.Lanes
}

func onStage(s *modeltest.Stage) laneStage { return laneStage{s, lanes.Of(s.C)} }

func newLaneStage(t *testing.T, k layout.LaneKind) laneStage {
	s := onStage(modeltest.NewStage(t))
	require.NoError(t, s.L.SetKind(s.Ctx, "k", k))
	return s
}

// endInfeasible has time pass until what no worker can run is ended.
func (s laneStage) endInfeasible() {
	var seen fit.Unschedulable
	for range 5 {
		s.Clock.Advance(45 * time.Second)
		for next := s.Clock.Now(); !next.IsZero(); {
			var err error
			_, next, err = fit.EndInfeasible(s.Ctx, s.C, &seen)
			require.NoError(s.T, err)
		}
	}
}

func (s laneStage) lane(key string) layout.Lane { return layout.Lane{Kind: "k", Key: key} }

func (s laneStage) submit(key string, change ...func(*fdbmodel.Submission)) layout.ID {
	return s.Submit(append(change, func(sub *fdbmodel.Submission) { sub.Spec.Lane = s.lane(key) })...)
}

func (s laneStage) line(key string) []layout.ID {
	v, err := s.L.View(s.Ctx, s.lane(key), 100)
	require.NoError(s.T, err)
	return v.Line
}

func (s laneStage) open(key string) int {
	v, err := s.L.View(s.Ctx, s.lane(key), 0)
	require.NoError(s.T, err)
	return v.Open
}

// end realizes what the worker can claim, and returns its ids.
func (s laneStage) end() (ids []layout.ID) {
	for _, f := range s.Claim(s.Worker) {
		ids = append(ids, f.ID)
		outcome := s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Result: &layout.Result{}})
		require.Contains(s.T, []fdbmodel.Outcome{fdbmodel.Applied, fdbmodel.Already}, outcome)
	}
	return ids
}

func (s laneStage) check() {
	report := modeltest.RequireSound(s.T, s.C)
	for _, note := range report.Notes {
		require.NotEqual(s.T, audit.InvariantLane, note.Invariant, "%+v", note)
	}
}

func prior(n uint8) func(*fdbmodel.Submission) {
	return func(s *fdbmodel.Submission) { s.Spec.Priority = n }
}

func TestLaneAdmitsByPriorityAndCommit(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	a, b, c := s.submit("x"), s.submit("x"), s.submit("x")
	urgent := s.submit("x", prior(9))
	other := s.submit("y")
	require.Equal(t, []layout.ID{urgent, b, c}, s.line("x"))
	require.ElementsMatch(t, []layout.ID{a, other}, s.end())
	for _, want := range []layout.ID{urgent, b, c} {
		s.check()
		require.Equal(t, []layout.ID{want}, s.end())
	}
	require.Empty(t, s.line("x"))
	all, err := s.L.List(s.Ctx, "k", "", 10)
	require.NoError(t, err)
	require.Empty(t, all, "a lane costs nothing once it is empty")
	s.check()
}

func TestLaneOfOneSubmitKeepsItsOrder(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Width: 2})
	subs := make([]fdbmodel.Submission, 300)
	for i := range subs {
		subs[i].Spec = layout.Spec{Function: "go:f", Lane: s.lane("x")}
	}
	got, err := s.C.Submit(s.Ctx, subs)
	require.NoError(t, err)
	for len(got) > 0 {
		n := min(2, len(got))
		ended := s.end()
		require.ElementsMatch(t, []layout.ID{got[0].ID, got[n-1].ID}, append(ended, ended[0])[:2])
		got = got[n:]
	}
	s.check()
}

func TestLaneOfAFutureThatIsRetried(t *testing.T) {
	t.Parallel()
	for _, aside := range []bool{false, true} {
		t.Run(fmt.Sprint(aside), func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, layout.LaneKind{Aside: aside})
			first, second := s.submit("x"), s.submit("x")
			f := s.Claim(s.Worker)[0]
			s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Exception: &layout.Exception{Kind: layout.KindError}})
			require.Equal(t, layout.Delayed, s.State(first))
			s.check()
			if !aside {
				require.Empty(t, s.Claim(s.Worker), "the slot is kept")
				s.Clock.Advance(time.Minute)
				_, _, err := maintenance.Of(s.C).PromoteDue(s.Ctx)
				require.NoError(t, err)
				require.Equal(t, []layout.ID{first}, s.end())
				require.Equal(t, []layout.ID{second}, s.end())
				return
			}
			third := s.submit("x")
			s.Clock.Advance(time.Minute)
			_, _, err := maintenance.Of(s.C).PromoteDue(s.Ctx)
			require.NoError(t, err)
			require.Equal(t, []layout.ID{third, first}, s.line("x"), "it gets in line again")
			require.Equal(t, []layout.ID{second}, s.end())
			s.check()
		})
	}
}

func TestLaneWithARate(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Width: 100, Rate: 5, Every: time.Second})
	for range 12 {
		s.submit("x")
	}
	admitted, start := 0, s.Clock.Now()
	for admitted < 12 {
		_, next, err := s.L.AdmitDue(s.Ctx)
		require.NoError(t, err)
		admitted += len(s.end())
		require.LessOrEqual(t, admitted, 1+int(s.Clock.Now().Sub(start)/(200*time.Millisecond)))
		s.check()
		if admitted < 12 && next.After(s.Clock.Now()) {
			s.Clock.Advance(next.Sub(s.Clock.Now()))
		}
	}
	require.Equal(t, 11*200*time.Millisecond, s.Clock.Now().Sub(start), "it is used up")
	s.Clock.Advance(time.Second)
	_, _, err := s.L.AdmitDue(s.Ctx)
	require.NoError(t, err)
	all, err := s.L.List(s.Ctx, "k", "", 10)
	require.NoError(t, err)
	require.Empty(t, all)
}

func TestLanesTakeTurns(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Width: 10, Total: 2})
	names := map[layout.ID]string{}
	for range 6 {
		names[s.submit("greedy")] = "greedy"
	}
	for range 2 {
		names[s.submit("a")], names[s.submit("b")] = "a", "b"
	}
	var order []string
	for len(order) < 10 {
		s.check()
		ended := s.end()
		require.LessOrEqual(t, len(ended), 2)
		for _, id := range ended {
			order = append(order, names[id])
		}
	}
	counts := map[string]int{}
	for _, name := range order[2:8] {
		counts[name]++
	}
	require.Equal(t, map[string]int{"greedy": 2, "a": 2, "b": 2}, counts, "%v", order)
	s.check()
}

func TestLanesThatPause(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Width: 2})
	require.NoError(t, s.L.Pause(s.Ctx, s.lane("x"), true))
	x, y := s.submit("x"), s.submit("y")
	require.Equal(t, []layout.ID{y}, s.end())
	require.NoError(t, s.L.Pause(s.Ctx, s.lane("x"), false))
	require.Equal(t, []layout.ID{x}, s.end())
	require.NoError(t, s.L.PauseKind(s.Ctx, "k", true))
	x, y = s.submit("x"), s.submit("y")
	require.Empty(t, s.end())
	s.check()
	require.NoError(t, s.L.PauseKind(s.Ctx, "k", false))
	require.ElementsMatch(t, []layout.ID{x, y}, s.end())
	require.ErrorIs(t, s.L.PauseKind(s.Ctx, "unknown", true), fdbmodel.ErrNotFound)
	require.ErrorIs(t, s.L.Pause(s.Ctx, layout.Lane{Kind: "unknown", Key: "a"}, true), fdbmodel.ErrNotFound)
}

func TestLaneSettingsChange(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	for range 400 {
		s.submit("x")
	}
	require.NoError(t, s.L.SetKind(s.Ctx, "k", layout.LaneKind{Width: 300}))
	for range 10 {
		_, _, err := s.L.AdmitDue(s.Ctx)
		require.NoError(t, err)
	}
	require.Equal(t, 300, s.open("x"), "more than one transaction admits")
	require.NoError(t, s.L.SetKind(s.Ctx, "k", layout.LaneKind{Width: 298}))
	require.Len(t, s.end(), 8)
	require.Equal(t, 298, s.open("x"))
	s.check()
	require.ErrorIs(t, s.L.RemoveKind(s.Ctx, "k"), fdbmodel.ErrInUse)
	require.ErrorIs(t, s.L.SetKind(s.Ctx, "k", layout.LaneKind{Total: 3}), fdbmodel.ErrInUse)
	require.ErrorIs(t, s.L.SetKind(s.Ctx, "k", layout.LaneKind{Width: -1}), layout.ErrBadConfig)
	require.ErrorIs(t, s.L.RemoveKind(s.Ctx, "unknown"), fdbmodel.ErrNotFound)
}

func TestLaneIsRefused(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	for name, sub := range map[string]fdbmodel.Submission{
		"unknown":  {Spec: layout.Spec{Lane: layout.Lane{Kind: "unknown", Key: "a"}}},
		"bad name": {Spec: layout.Spec{Lane: layout.Lane{Kind: "a b", Key: "a"}}},
		"long key": {Spec: layout.Spec{Lane: layout.Lane{Kind: "k", Key: string(make([]byte, layout.MaxLaneKey+1))}}},
		"held":     {Spec: layout.Spec{Lane: s.lane("x"), Owner: "b"}},
		"assigned": {Spec: layout.Spec{Lane: s.lane("x")}, Assigned: s.Worker.ID()},
	} {
		sub.Spec.Function = "go:f"
		_, err := s.C.Submit(s.Ctx, []fdbmodel.Submission{sub})
		require.True(t, errors.Is(err, fdbmodel.ErrNotFound) || errors.Is(err, layout.ErrBadName) ||
			errors.Is(err, layout.ErrBadSpec), "%s: %v", name, err)
	}
	key := func(s *fdbmodel.Submission) { s.Key = "same" }
	s.submit("x", key)
	_, err := s.C.Submit(s.Ctx, []fdbmodel.Submission{{Key: "same", Spec: layout.Spec{Function: "go:f", Lane: s.lane("y")},
		Args: []byte("x")}})
	require.ErrorIs(t, err, fdbmodel.ErrIDInUse)
	require.ErrorContains(t, err, "lane")
}

// TestSlotsAreNotLost ends futures with slots in every way: each frees its slot once.
func TestSlotsAreNotLost(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	for name, end := range map[string]func(*fdbmodel.ClaimedFuture){
		"cancelled": func(f *fdbmodel.ClaimedFuture) {
			_, _, err := s.C.Cancel(s.Ctx, f.ID, "")
			require.NoError(t, err)
			s.Finish(s.Worker, fdbmodel.Completion{Future: f, Relinquish: true})
		},
		"failed": func(f *fdbmodel.ClaimedFuture) {
			s.Finish(s.Worker, fdbmodel.Completion{Future: f, Exception: &layout.Exception{}, Permanent: true})
		},
		"given back and cancelled": func(f *fdbmodel.ClaimedFuture) {
			s.Finish(s.Worker, fdbmodel.Completion{Future: f, Reject: true})
			_, _, err := s.C.Cancel(s.Ctx, f.ID, "")
			require.NoError(t, err)
		},
		"twice": func(f *fdbmodel.ClaimedFuture) {
			done := fdbmodel.Completion{Future: f, Result: &layout.Result{}}
			s.Finish(s.Worker, done)
			require.Equal(t, fdbmodel.Already, s.Finish(s.Worker, done))
		},
	} {
		s.submit("x")
		next := s.submit("x")
		f := s.Claim(s.Worker)[0]
		end(&f)
		s.check()
		require.Equal(t, 1, s.open("x"), name)
		require.Equal(t, []layout.ID{next}, s.end(), name)
	}
	waiting := []layout.ID{s.submit("x"), s.submit("x"), s.submit("x")}
	_, _, err := s.C.Cancel(s.Ctx, waiting[1], "")
	require.NoError(t, err)
	require.Equal(t, waiting[2:], s.line("x"), "what is cancelled in line leaves it")
	s.check()
}

// TestUnknownResultsOfLanes has commits with unknown results, which are made or not.
func TestUnknownResultsOfLanes(t *testing.T) {
	t.Parallel()
	for _, fault := range []faultkv.Fault{faultkv.UnknownCommitted, faultkv.UnknownLost, faultkv.UnknownLate} {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, layout.LaneKind{Rate: 1, Every: time.Second})
			play := func(tag string, fn func()) {
				s.Faults.FailNext(fault, func(t string) bool { return t == tag })
				fn()
				s.Faults.Flush()
				s.check()
			}
			var ids []layout.ID
			for range 3 {
				play("futura-submit", func() { ids = append(ids, s.submit("x")) })
			}
			require.Equal(t, ids[1:], s.line("x"))
			play("futura-finish", func() { require.Equal(t, ids[:1], s.end()) })
			s.Clock.Advance(time.Second)
			play("futura-lanes", func() {
				_, _, err := s.L.AdmitDue(s.Ctx)
				require.NoError(t, err)
			})
			require.Equal(t, 1, s.open("x"))
			play("futura-lanes", func() { require.NoError(t, s.L.Pause(s.Ctx, s.lane("x"), true)) })
			play("futura-cancel", func() {
				_, _, err := s.C.Cancel(s.Ctx, ids[1], "")
				require.NoError(t, err)
			})
			require.Zero(t, s.open("x"))
			play("futura-lanes", func() { require.NoError(t, s.L.SetKind(s.Ctx, "k", layout.LaneKind{Width: 2})) })
			play("futura-lanes", func() { require.NoError(t, s.L.Pause(s.Ctx, s.lane("x"), false)) })
			require.Equal(t, ids[2:], s.end())
			s.Clock.Advance(time.Second) // the rate is used until then
			_, _, err := s.L.AdmitDue(s.Ctx)
			require.NoError(t, err)
			play("futura-lanes", func() { require.NoError(t, s.L.RemoveKind(s.Ctx, "k")) })
			play("futura-lanes", func() { require.NoError(t, s.L.EnsureKind(s.Ctx, "k", layout.LaneKind{Width: 3})) })
			require.NoError(t, s.L.EnsureKind(s.Ctx, "k", layout.LaneKind{Width: 4}))
			kind, err := s.L.Kind(s.Ctx, "k")
			require.NoError(t, err)
			require.Equal(t, 3, kind.Width, "it was set before")
		})
	}
}

// TestSubmitsToAFullLaneDoNotConflict has many submit to one lane at once.
func TestSubmitsToAFullLaneDoNotConflict(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	s.submit("x")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				_, err := s.C.Submit(context.Background(), []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f",
					Lane: s.lane("x")}}})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	require.Len(t, s.line("x"), 100)
	s.check()
}
