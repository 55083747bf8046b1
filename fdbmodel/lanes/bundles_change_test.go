package lanes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/pauses"
)

// submitLater submits a future of lane x that is due in a second, so that its lane has
// nothing to do with it until then.
func (s laneStage) submitLater() layout.ID {
	return s.submit("x", func(sub *fdbmodel.Submission) {
		sub.NotBefore = s.Clock.Now().Add(time.Second)
	})
}

// promote makes ready what is due a second from now.
func (s laneStage) promote() {
	s.Clock.Advance(time.Second)
	_, _, err := maintenance.Of(s.C).PromoteDue(s.Ctx)
	require.NoError(s.T, err)
	s.check()
}

// endAll ends all futures in the lane x, in bundles of up to most, and returns their ids.
func (s laneStage) endAll(most int) (ended []layout.ID) {
	s.Worker = s.able()
	for range 10 {
		s.Clock.Advance(time.Second)
		_, _, err := s.L.AdmitDue(s.Ctx)
		require.NoError(s.T, err)
		s.check()
		for _, f := range s.Claim(s.Worker) {
			futures := []fdbmodel.ClaimedFuture{f}
			if f.Spec.Bundle {
				got, err := s.Worker.Gather(s.Ctx, &f, layout.MaxMembers)
				require.NoError(s.T, err)
				require.LessOrEqual(s.T, len(got.Members), most)
				for i := range got.Members {
					require.Equal(s.T, f.Spec.Function, got.Members[i].Spec.Function)
				}
				futures = append(got.Members, f)
			}
			s.realize(futures...)
			s.check()
			for i := range futures {
				if !futures[i].Spec.Bundle {
					ended = append(ended, futures[i].ID)
				}
			}
		}
	}
	require.Empty(s.T, s.line("x"))
	return ended
}

// able returns a worker with another function and resources.
func (s laneStage) able() *fdbmodel.Registration {
	info := s.Info()
	info.Address, info.Functions = "", []string{"go:f", "go:g"}
	info.Capacity = layout.Resources{Slots: 4, CPU: 4000, RAM: 1 << 30}
	w, err := s.C.Register(s.Ctx, info)
	require.NoError(s.T, err)
	return w
}

// TestKindsBeginAndEndToHaveBundles has futures get in line that were submitted for other
// settings of their kind: each one runs as it was to.
func TestKindsBeginAndEndToHaveBundles(t *testing.T) {
	t.Parallel()
	bundles := layout.LaneKind{Bundle: "go:f", Width: 2}
	for _, total := range []int{0, 2} {
		t.Run("from bundles", func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, bundles)
			members := []layout.ID{s.submitLater(), s.submitLater()}
			require.NoError(t, s.L.SetKind(s.Ctx, "k", layout.LaneKind{Width: 3, Total: total}))
			single := s.submitLater()
			s.promote()
			require.ElementsMatch(t, append(members, single), s.endAll(1))
		})
		t.Run("to bundles", func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, layout.LaneKind{Width: 3})
			singles := []layout.ID{s.submitLater(), s.submitLater()}
			with := bundles
			with.Total = total
			require.NoError(t, s.L.SetKind(s.Ctx, "k", with))
			member := s.submitLater()
			s.promote()
			require.ElementsMatch(t, append(singles, member), s.endAll(layout.MaxMembers))
		})
	}
	t.Run("to bundles of another function", func(t *testing.T) {
		t.Parallel()
		s := newLaneStage(t, bundles)
		old := s.submitLater()
		require.NoError(t, s.L.SetKind(s.Ctx, "k", layout.LaneKind{Bundle: "go:g", Width: 1}))
		other := s.submit("x", func(sub *fdbmodel.Submission) {
			sub.Spec.Function, sub.NotBefore = "go:g", s.Clock.Now().Add(time.Second)
		})
		s.promote()
		require.ElementsMatch(t, []layout.ID{old, other}, s.endAll(1))
	})
}

// TestBundlesTakeWhatTheyCanRun has a bundle leave in line what its worker may be unable
// to run, and all behind it.
func TestBundlesTakeWhatTheyCanRun(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*layout.Spec){
		"queue":   func(s *layout.Spec) { s.Queue = "other" },
		"timeout": func(s *layout.Spec) { s.Timeout = time.Hour },
		"labels":  func(s *layout.Spec) { s.Requirements.Labels = map[string]string{"zone": "a"} },
		"cpu":     func(s *layout.Spec) { s.Requirements.CPU = 600 },
		"ram":     func(s *layout.Spec) { s.Requirements.RAM = 1 },
		"gpu":     func(s *layout.Spec) { s.Requirements.GPU = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, layout.LaneKind{Bundle: "go:f"})
			needs := func(sub *fdbmodel.Submission) { sub.Spec.Requirements.CPU = 500 }
			first, small := s.submit("x", needs), s.submit("x")
			unlike := s.submit("x", needs, func(sub *fdbmodel.Submission) { change(&sub.Spec) })
			last := s.submit("x", needs)
			s.Worker = s.able()
			answer, err := s.Worker.Claim(s.Ctx, fdbmodel.ClaimRequest{Max: 1, Free: layout.Resources{Slots: 1, CPU: 4000}})
			require.NoError(t, err)
			require.Len(t, answer.Futures, 1)
			bundle := answer.Futures[0]
			got, err := s.Worker.Gather(s.Ctx, &bundle, layout.MaxMembers)
			require.NoError(t, err)
			members := got.Members
			require.Equal(t, []layout.ID{first, small}, idsOf(members))
			require.Equal(t, []layout.ID{unlike, last}, s.line("x"))
			s.realize(append(members, bundle)...)
			s.check()
		})
	}
}

// TestBundlesObeyPauses has bundles that are claimed take none of what is paused.
func TestBundlesObeyPauses(t *testing.T) {
	t.Parallel()
	work := func(what, name string) func(laneStage, bool) error {
		return func(s laneStage, paused bool) error {
			if !paused {
				_, err := pauses.Of(s.C).Resume(s.Ctx, what, name)
				return err
			}
			_, err := pauses.Of(s.C).Pause(s.Ctx, what, name, "")
			return err
		}
	}
	for name, pause := range map[string]func(laneStage, bool) error{
		"lane":     func(s laneStage, paused bool) error { return s.L.Pause(s.Ctx, s.lane("x"), paused) },
		"kind":     func(s laneStage, paused bool) error { return s.L.PauseKind(s.Ctx, "k", paused) },
		"queue":    work(pause.Queue, layout.DefaultQueue),
		"function": work(pause.Function, "go:f"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, layout.LaneKind{Bundle: "go:f"})
			id := s.submit("x")
			claimed := s.Claim(s.Worker)
			require.Len(t, claimed, 1)
			require.NoError(t, pause(s, true))
			got, err := s.Worker.Gather(s.Ctx, &claimed[0], layout.MaxMembers)
			require.NoError(t, err)
			require.Empty(t, got.Members)
			s.realize(claimed[0])
			s.check()
			require.Empty(t, s.Claim(s.Worker))
			require.NoError(t, pause(s, false))
			bundle, members := s.gather()
			require.Equal(t, []layout.ID{id}, idsOf(members))
			s.realize(append(members, bundle)...)
			s.check()
		})
	}
}

// TestBundlesThatGatherTwice has a bundle with members take no more than it may have in
// all, and none that workers died with.
func TestBundlesThatGatherTwice(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Bundle: "go:f", Bytes: 2500})
	size := func(n int) func(*fdbmodel.Submission) {
		return func(s *fdbmodel.Submission) { s.Args = make([]byte, n) }
	}
	first := s.submit("x", size(2000))
	bundle, members := s.gather()
	require.Equal(t, []layout.ID{first}, idsOf(members))
	second, third := s.submit("x", size(500)), s.submit("x", size(1))
	got, err := s.Worker.Gather(s.Ctx, &bundle, layout.MaxMembers)
	require.NoError(t, err)
	require.Equal(t, []layout.ID{second}, idsOf(got.Members))
	require.Equal(t, []layout.ID{third}, s.line("x"))
	s.check()

	// The worker dies with two of them, which then run alone.
	got, err = s.Worker.Gather(s.Ctx, &bundle, layout.MaxMembers)
	require.NoError(t, err)
	require.Empty(t, got.Members, "it is full")
	s.LoseWorker()
	fresh := s.submit("x", func(sub *fdbmodel.Submission) { sub.Spec.Priority = layout.MaxPriority })
	s.Clock.Advance(time.Minute)
	var found bool
	for range 8 {
		_, _, err = maintenance.Of(s.C).PromoteDue(s.Ctx)
		require.NoError(t, err)
		for _, f := range s.Claim(s.Worker) {
			got, err := s.Worker.Gather(s.Ctx, &f, 1)
			require.NoError(t, err)
			if n := len(got.Members); n > 0 && got.Members[0].ID == fresh {
				found = true
				more, err := s.Worker.Gather(s.Ctx, &f, layout.MaxMembers)
				require.NoError(t, err)
				require.Equal(t, []layout.ID{third}, idsOf(more.Members), "workers died with the others")
				got.Members = append(got.Members, more.Members...)
			}
			s.realize(append(got.Members, f)...)
			s.check()
		}
	}
	require.True(t, found)
}
