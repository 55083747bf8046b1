package lanes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
)

// to is a submission to a lane.
func (s laneStage) to(key string) fdbmodel.Submission {
	return fdbmodel.Submission{Spec: layout.Spec{Function: "go:f", Lane: s.lane(key)}}
}

// requireFull requires that a lane takes no more, and that nothing of a refused submit is there.
func (s laneStage) requireFull(key string) {
	before, ready := s.line(key), s.Counted(layout.Ready)
	answers, err := s.C.Submit(s.Ctx, []fdbmodel.Submission{s.to("other"), s.to(key), s.to("other")})
	require.ErrorIs(s.T, err, fdbmodel.ErrLaneFull)
	require.ErrorContains(s.T, err, "--max-waiting")
	require.False(s.T, fdbmodel.IsMistake(err), "it may succeed later")
	require.Empty(s.T, answers)
	require.Equal(s.T, before, s.line(key))
	require.Zero(s.T, s.open("other"), "a refused submit leaves nothing")
	require.Equal(s.T, ready, s.Counted(layout.Ready))
	s.check()
}

func TestAFullLaneRefusesSubmits(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{MaxWaiting: 2})
	first := s.submit("x")
	s.submit("x")
	s.submit("x", prior(9))
	require.Len(t, s.line("x"), 2, "the one that runs does not wait")
	s.requireFull("x")
	s.submit("y")
	require.Contains(t, s.end(), first)
	require.Len(t, s.line("x"), 1)
	s.submit("x")
	s.requireFull("x")
	require.NoError(t, s.L.SetKind(s.Ctx, "k", layout.LaneKind{MaxWaiting: 3}))
	s.submit("x")
	require.NoError(t, s.L.SetKind(s.Ctx, "k", layout.LaneKind{MaxWaiting: 1}))
	s.requireFull("x")
	require.NoError(t, s.L.SetKind(s.Ctx, "k", layout.LaneKind{}))
	s.submit("x")
	require.Len(t, s.line("x"), 4)
}

// TestOneSubmitToAFullLane has one call submit more to a lane than may wait, and as many.
func TestOneSubmitToAFullLane(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{MaxWaiting: 2})
	subs := []fdbmodel.Submission{s.to("x"), s.to("x"), s.to("x"), s.to("x")}
	_, err := s.C.Submit(s.Ctx, subs)
	require.ErrorIs(t, err, fdbmodel.ErrLaneFull)
	require.Zero(t, s.open("x"))
	_, err = s.C.Submit(s.Ctx, subs[:3])
	require.NoError(t, err)
	require.Len(t, s.line("x"), 2)
}

// TestSubmitsOfOneTransactionToAFullLane has a caller's transaction submit several times, which can't
// read what it has put in line.
func TestSubmitsOfOneTransactionToAFullLane(t *testing.T) {
	t.Parallel()
	for before := range 4 {
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, layout.LaneKind{MaxWaiting: 2})
			for range before {
				s.submit("x")
			}
			for n := range 4 {
				tx := s.Faults.Begin(kv.Options{})
				var err error
				for i := 0; i < n && err == nil; i++ {
					_, err = s.C.SubmitTx(s.Ctx, tx, []fdbmodel.Submission{s.to("x")})
				}
				tx.Cancel()
				if before+n > 3 && n > 0 {
					require.ErrorIs(t, err, fdbmodel.ErrLaneFull)
				} else {
					require.NoError(t, err, "%d more", n)
				}
			}
			if before > 1 {
				return
			}
			s.submitInOne("x", 2)
			s.end()
			require.Len(t, s.line("x"), before)
			s.submitInOne("x", 2-before)
			s.requireFull("x")
		})
	}
}

// submitInOne submits to a lane n times in one transaction.
func (s laneStage) submitInOne(key string, n int) {
	_, err := s.C.Transact(s.Ctx, kv.Options{}, func(tx kv.Attempt) error {
		for range n {
			if _, err := s.C.SubmitTx(s.Ctx, tx, []fdbmodel.Submission{s.to(key)}); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(s.T, err)
}

// TestWhatAFullLaneNeverRefuses has futures get in line that were submitted before.
func TestWhatAFullLaneNeverRefuses(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{MaxWaiting: 1, Aside: true})
	key := func(k string) func(*fdbmodel.Submission) { return func(sub *fdbmodel.Submission) { sub.Key = k } }
	first := s.submit("x")
	f := s.Claim(s.Worker)[0]
	waits := s.submit("x", key("k"))
	require.Equal(t, waits, s.submit("x", key("k")), "it is there already")
	later := s.submit("x", func(sub *fdbmodel.Submission) { sub.NotBefore = s.Clock.Now().Add(time.Second) })
	input := s.Submit()
	blocked := s.submit("x", func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{input} })
	s.requireFull("x")
	s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Exception: &layout.Exception{Kind: layout.KindError}})
	s.submit("x")
	s.Clock.Advance(time.Minute)
	_, _, err := maintenance.Of(s.C).PromoteDue(s.Ctx)
	require.NoError(t, err)
	s.end()
	line := s.line("x")
	require.Contains(t, line, first, "a retry")
	require.Contains(t, line, later, "what was delayed")
	require.Contains(t, line, blocked, "what waited for an input")
	s.requireFull("x")
}

func TestAFullLaneHasRoomWhereOneLeavesIt(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{MaxWaiting: 1})
	s.submit("x")
	unique := func(c fdbmodel.Conflict) func(*fdbmodel.Submission) {
		return func(sub *fdbmodel.Submission) { sub.Unique = &fdbmodel.Unique{Key: "u", OnConflict: c} }
	}
	one := s.submit("x", unique(fdbmodel.ConflictReturn))
	require.Equal(t, one, s.submit("x", unique(fdbmodel.ConflictReturn)), "the same work is no other one")
	other := s.submit("x", unique(fdbmodel.ConflictReplace))
	require.Equal(t, []layout.ID{other}, s.line("x"), "it takes the place of the former one")
	s.requireFull("x")
	_, _, err := s.C.Cancel(s.Ctx, other, "")
	require.NoError(t, err)
	s.submit("x")
	s.requireFull("x")
}

// TestTheLastPlaceInLineIsTakenOnce has another future get in line before the commit of one for which
// there was a place.
func TestTheLastPlaceInLineIsTakenOnce(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{MaxWaiting: 2})
	s.submit("x")
	s.submit("x")
	c := s.Interrupted("futura-submit", func() { s.submit("x") })
	_, err := c.Submit(s.Ctx, []fdbmodel.Submission{s.to("x")})
	require.ErrorIs(t, err, fdbmodel.ErrLaneFull)
	require.Len(t, s.line("x"), 2)
	s.requireFull("x")
}

func TestUnknownResultOfASubmitForTheLastPlace(t *testing.T) {
	t.Parallel()
	for _, fault := range []faultkv.Fault{faultkv.UnknownCommitted, faultkv.UnknownLost, faultkv.UnknownLate} {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, layout.LaneKind{MaxWaiting: 1})
			s.submit("x")
			s.Faults.FailNext(fault, func(tag string) bool { return tag == "futura-submit" })
			id := s.submit("x")
			s.Faults.Flush()
			require.Equal(t, []layout.ID{id}, s.line("x"))
			s.requireFull("x")
		})
	}
}

// TestAResultWhoseSendFindsNoPlace has two attempts send with their results, one of them to a full lane.
func TestAResultWhoseSendFindsNoPlace(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{MaxWaiting: 1})
	s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.MaxRetries = 1 })
	s.Submit()
	claimed := s.Claim(s.Worker)
	s.submit("x")
	key := s.C.Keys().Spec(claimed[0].ID) // any key
	key = append(key, 1)
	done, told := make([]fdbmodel.Completion, 2), [2][]kv.Version{}
	for i := range done {
		// The first one sends one more than there is room for.
		subs := []fdbmodel.Submission{s.to("x"), s.to("y")}
		if i == 0 && claimed[i].Spec.MaxRetries == 0 {
			claimed[0], claimed[1] = claimed[1], claimed[0]
		}
		if i == 0 {
			subs = append(subs, s.to("x"))
		}
		prepared, err := s.C.Prepare(s.Ctx, subs)
		require.NoError(t, err)
		beside := &fdbmodel.Beside{Submits: prepared, Done: func(v kv.Version) { told[i] = append(told[i], v) }}
		if i == 0 {
			beside.Write = []kv.KeyValue{{Key: key, Value: []byte("turn")}}
		}
		done[i] = fdbmodel.Completion{Future: &claimed[i], Result: &layout.Result{}, Beside: beside}
	}
	outcomes, err := s.Worker.Finish(s.Ctx, done)
	require.NoError(t, err)
	require.Equal(t, []fdbmodel.Outcome{fdbmodel.Applied, fdbmodel.Applied}, outcomes)
	require.Equal(t, layout.Delayed, done[0].After.State, "it is tried again")
	require.Equal(t, layout.Realized, done[1].After.State, "the other one counts")
	row, err := s.C.Get(s.Ctx, claimed[0].ID)
	require.NoError(t, err)
	require.Contains(t, row.Exception.Message, "future 3 of those")
	require.Contains(t, row.Exception.Message, "lane k/x: the lane is full")
	require.Nil(t, s.Read(key), "nothing of a refused turn is written")
	require.Equal(t, []kv.Version{kv.NoVersion}, told[0])
	require.True(t, len(told[1]) == 1 && told[1][0] > kv.NoVersion, "%v", told[1])
	require.Len(t, s.line("x"), 1)
	require.Equal(t, 1, s.open("y"))
	require.Empty(t, s.line("y"))
	s.check()
}
