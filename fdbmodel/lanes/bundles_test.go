package lanes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
)

// gather claims the bundles that there are, and gathers the members of the first.
func (s laneStage) gather() (bundle fdbmodel.ClaimedFuture, members []fdbmodel.ClaimedFuture) {
	claimed := s.Claim(s.Worker)
	require.Len(s.T, claimed, 1)
	require.True(s.T, claimed[0].Spec.Bundle)
	got, err := s.Worker.Gather(s.Ctx, &claimed[0], layout.MaxMembers)
	require.NoError(s.T, err)
	return claimed[0], got.Members
}

func (s laneStage) realize(futures ...fdbmodel.ClaimedFuture) {
	for i := range futures {
		s.Finish(s.Worker, fdbmodel.Completion{Future: &futures[i], Result: &layout.Result{}})
	}
}

func idsOf(futures []fdbmodel.ClaimedFuture) (ids []layout.ID) {
	for i := range futures {
		ids = append(ids, futures[i].ID)
	}
	return ids
}

func TestBundlesGatherWhatIsInLine(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Bundle: "go:f", Most: 3})
	first := s.submit("x")
	require.Equal(t, []layout.ID{first}, s.line("x"), "no member is ever in the pool")
	bundle, members := s.gather()
	s.check()
	require.Equal(t, []layout.ID{first}, idsOf(members))
	var want []layout.ID
	for range 5 {
		want = append(want, s.submit("x"))
	}
	require.Empty(t, s.Claim(s.Worker), "others gather while one runs")
	s.realize(append(members, bundle)...)
	s.check()
	bundle, members = s.gather()
	require.Equal(t, want[:3], idsOf(members))
	s.realize(bundle)
	s.realize(members...)
	s.check()
	bundle, members = s.gather()
	require.Equal(t, want[3:], idsOf(members))
	s.realize(append(members, bundle)...)
	require.Empty(t, s.Claim(s.Worker))
	lanes, err := s.L.List(s.Ctx, "k", "", 10)
	require.NoError(t, err)
	require.Empty(t, lanes)
	s.check()
}

func TestBundlesAreBoundedByBytes(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Bundle: "go:f", Bytes: 2500})
	size := func(n int) func(*fdbmodel.Submission) {
		return func(s *fdbmodel.Submission) { s.Args = make([]byte, n) }
	}
	ids := []layout.ID{s.submit("x", size(5000)), s.submit("x", size(2000)), s.submit("x", size(500)),
		s.submit("x", size(1))}
	for _, want := range [][]layout.ID{ids[:1], ids[1:3], ids[3:]} {
		bundle, members := s.gather()
		require.Equal(t, want, idsOf(members))
		for i := range members {
			require.Len(t, members[i].Inline, int(members[i].Spec.ArgsSize))
		}
		s.realize(append(members, bundle)...)
		s.check()
	}
}

// TestLaterGathersKeepTheBounds takes members for a bundle that has some: neither too many
// nor too large, and none that has to run alone.
func TestLaterGathersKeepTheBounds(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Bundle: "go:f", Bytes: 2500, Most: 4})
	size := func(n int) func(*fdbmodel.Submission) {
		return func(s *fdbmodel.Submission) { s.Args = make([]byte, n) }
	}
	first := func(s *fdbmodel.Submission) { s.Spec.Priority = 9 }
	s.submit("x", size(2000))
	bundle, held := s.gather()
	more := func(most int) fdbmodel.Bundle {
		got, err := s.Worker.Gather(s.Ctx, &bundle, most)
		require.NoError(t, err)
		held = append(held, got.Members...)
		return got
	}
	require.False(t, more(100).Full)
	small := s.submit("x", size(400))
	large := s.submit("x", size(200))
	got := more(100)
	require.Equal(t, []layout.ID{small}, idsOf(got.Members))
	require.True(t, got.Full, "2,600 bytes are too many")
	for range 3 {
		s.submit("x", first)
	}
	require.Len(t, more(100).Members, 2)
	got = more(100)
	require.Empty(t, got.Members)
	require.True(t, got.Full, "four are the most")
	require.NotContains(t, idsOf(held), large)
	s.realize(append(held, bundle)...)
	s.check()

	bundle, held = s.gather()
	require.Len(t, held, 2)
	require.NoError(t, s.Worker.Begin(s.Ctx, &bundle))
	s.LoseWorker()
	fresh := s.submit("x", first)
	s.Clock.Advance(time.Minute)
	_, _, err := maintenance.Of(s.C).PromoteDue(s.Ctx)
	require.NoError(t, err)
	bundle, held = s.gather()
	require.Equal(t, []layout.ID{fresh}, idsOf(held))
	got = more(100)
	require.Empty(t, got.Members)
	require.True(t, got.Full, "the others were there when a worker died")
	s.check()
}

// TestBundleOfADeadWorker has members come back, and those that workers died with run
// alone.
func TestBundleOfADeadWorker(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Bundle: "go:f"})
	ids := []layout.ID{s.submit("x"), s.submit("x"), s.submit("x")}
	bundle, members := s.gather()
	require.Equal(t, ids, idsOf(members))
	require.NoError(t, s.Worker.Begin(s.Ctx, &bundle))
	_, err := s.C.ForceReap(s.Ctx, s.Worker.ID())
	require.NoError(t, err)
	s.check()
	_, err = s.Worker.Gather(s.Ctx, &bundle, 1)
	require.ErrorIs(t, err, fdbmodel.ErrReaped)
	s.Worker, err = s.C.Register(s.Ctx, s.Info())
	require.NoError(t, err)
	for len(ids) > 0 {
		s.Clock.Advance(time.Minute)
		_, _, err = maintenance.Of(s.C).PromoteDue(s.Ctx)
		require.NoError(t, err)
		s.check()
		bundle, members = s.gather()
		require.Len(t, members, 1, "which of them killed it is yet to be found")
		at := slices.Index(ids, members[0].ID)
		require.GreaterOrEqual(t, at, 0)
		ids = slices.Delete(ids, at, at+1)
		s.realize(append(members, bundle)...)
	}
	s.check()
}

func TestBundlesAreRefused(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Bundle: "go:f"})
	input := s.Submit()
	s.end()
	for name, change := range map[string]func(*fdbmodel.Submission){
		"another function": func(s *fdbmodel.Submission) { s.Spec.Function = "go:g" },
		"inputs":           func(s *fdbmodel.Submission) { s.Inputs = []layout.ID{input} },
		"a bundle":         func(s *fdbmodel.Submission) { s.Spec.Bundle = true },
	} {
		sub := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f", Lane: s.lane("x")}}
		change(&sub)
		_, err := s.C.Submit(s.Ctx, []fdbmodel.Submission{sub})
		require.ErrorIs(t, err, layout.ErrBadSpec, name)
	}
	for name, k := range map[string]layout.LaneKind{
		"too many":    {Bundle: "go:f", Most: layout.MaxMembers + 1},
		"no function": {Most: 3}, "a module": {Bundle: "wasm:a"}, "aside": {Bundle: "go:f", Aside: true},
		"linger": {Bundle: "go:f", Linger: time.Hour}, "bytes": {Bundle: "go:f", Bytes: 1 << 40},
	} {
		require.ErrorIs(t, s.L.SetKind(s.Ctx, "other", k), layout.ErrBadConfig, name)
	}
	s.submit("x")
	require.ErrorIs(t, s.L.SetKind(s.Ctx, "k", layout.LaneKind{}), fdbmodel.ErrInUse)
	bundle, members := s.gather()
	s.Finish(s.Worker, fdbmodel.Completion{Future: &bundle, Exception: &layout.Exception{}, Permanent: true})
	require.ErrorIs(t, s.C.Retry(s.Ctx, bundle.ID), fdbmodel.ErrTransition, "members are retried, not bundles")
	_, err := s.Worker.Gather(s.Ctx, &bundle, 1)
	require.ErrorIs(t, err, fdbmodel.ErrTransition)
	s.realize(members...)
	s.check()
}

// TestUnknownResultsOfGathers has a gather with an unknown result, which is committed or not.
func TestUnknownResultsOfGathers(t *testing.T) {
	t.Parallel()
	for _, fault := range []faultkv.Fault{faultkv.UnknownCommitted, faultkv.UnknownLost, faultkv.UnknownLate} {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, layout.LaneKind{Bundle: "go:f", Width: 2, Most: 2})
			ids := []layout.ID{s.submit("x"), s.submit("x"), s.submit("x")}
			s.Faults.FailNext(fault, func(tag string) bool { return tag == "futura-gather" })
			bundle, members := s.gather()
			s.Faults.Flush()
			s.check()
			require.Equal(t, ids[:2], idsOf(members))
			second, rest := s.gather()
			require.Equal(t, ids[2:], idsOf(rest), "what it left has another bundle")
			s.realize(append(append(members, rest...), bundle, second)...)
			s.check()
			for _, id := range ids {
				require.Equal(t, layout.Realized, s.State(id))
			}
		})
	}
}

// TestGathersLeaveClaimsTheirTurns has a worker with futures of its own gather between its
// claims: it comes to what is in the pool in any case.
func TestGathersLeaveClaimsTheirTurns(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Bundle: "go:f"})
	s.submit("x")
	bundle, members := s.gather()
	var own []layout.ID
	for range 5 {
		own = append(own, s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Owner = "g" }))
	}
	outcomes, err := s.C.Assign(s.Ctx, fdbmodel.Assignment{To: s.Worker.ID()}, own)
	require.NoError(t, err)
	require.Equal(t, fdbmodel.Applied, outcomes[0])
	pooled := s.Submit()
	found := false
	for range 4 {
		answer, err := s.Worker.Claim(s.Ctx, fdbmodel.ClaimRequest{Max: 1, Free: layout.Resources{Slots: 1}})
		require.NoError(t, err)
		for i := range answer.Futures {
			found = found || answer.Futures[i].ID == pooled
		}
		_, err = s.Worker.Gather(s.Ctx, &bundle, 1)
		require.NoError(t, err)
	}
	require.True(t, found)
	s.realize(append(members, bundle)...)
}

// TestMembersOfBundlesAreClaims has those who count the claims of the process hear of members as they are gathered, and
// not only of their ends.
func TestMembersOfBundlesAreClaims(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Bundle: "go:f", Most: 3})
	claims := 0
	s.C.OnClaims(func(n int, _ kv.Version) { claims += n })
	s.submit("x")
	s.submit("x")
	bundle, members := s.gather()
	require.Equal(t, 3, claims)
	s.realize(append(members, bundle)...)
	require.Zero(t, claims)
}
