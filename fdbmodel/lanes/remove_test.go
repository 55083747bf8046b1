package lanes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestLanesThatAreOnlyPausedAreRemoved with their kind, and those with futures keep it.
func TestLanesThatAreOnlyPausedAreRemoved(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	for _, key := range []string{"a", "b", "c"} {
		require.NoError(t, s.L.Pause(s.Ctx, s.lane(key), true))
	}
	s.submit("used")
	s.submit("b")
	require.ErrorIs(t, s.L.RemoveKind(s.Ctx, "k"), fdbmodel.ErrInUse)
	require.Len(t, s.end(), 1)
	require.ErrorIs(t, s.L.RemoveKind(s.Ctx, "k"), fdbmodel.ErrInUse, "one is in line of a paused lane")
	_, _, err := s.C.Cancel(s.Ctx, s.line("b")[0], "")
	require.NoError(t, err)
	lanes, err := s.L.List(s.Ctx, "k", "", 10)
	require.NoError(t, err)
	require.Len(t, lanes, 3)
	require.NoError(t, s.L.RemoveKind(s.Ctx, "k"))
	s.check()
	require.NoError(t, s.L.SetKind(s.Ctx, "k", layout.LaneKind{}))
	lanes, err = s.L.List(s.Ctx, "k", "", 10)
	require.NoError(t, err)
	require.Empty(t, lanes, "a kind that is made anew has no paused lanes")
	s.submit("a")
	require.Len(t, s.end(), 1)
}

// TestUnknownResultsOfLanesInACallersTransaction is TestUnknownResults for futures of
// lanes that a program submits in its own transaction, with ids of its own: each is
// admitted or in line once, in the order of the tasks.
func TestUnknownResultsOfLanesInACallersTransaction(t *testing.T) {
	t.Parallel()
	plays := map[string]func(s *modeltest.Stage, strike func()){}
	for name, k := range map[string]layout.LaneKind{
		"caller with room": {Width: 2}, "caller in line": {}, "caller in turns": {Width: 2, Total: 1},
		"caller at a rate": {Width: 3, Rate: 1, Every: time.Second},
	} {
		plays[name] = func(stage *modeltest.Stage, strike func()) {
			s := onStage(stage)
			require.NoError(s.T, s.L.SetKind(s.Ctx, "k", k))
			ids, err := s.C.DrawIDs(4)
			require.NoError(s.T, err)
			strike()
			retry := kv.Retry{Options: kv.Options{Tag: name}}
			_, err = kv.Transact(s.Ctx, s.C.Database(), retry, func(tx kv.Attempt) error {
				subs := s.inLanes("x", "x", "y", "x")
				for i := range subs {
					subs[i].ID = ids[i]
				}
				_, err := s.C.SubmitTx(s.Ctx, tx, subs)
				return err
			})
			require.NoError(s.T, err)
			s.Faults.Flush()
			s.check()
			var ended []layout.ID
			for range 20 {
				ended = append(ended, s.end()...)
				s.Clock.Advance(time.Second)
				_, _, err := s.L.AdmitDue(s.Ctx)
				require.NoError(s.T, err)
				s.check()
			}
			require.ElementsMatch(s.T, ids, ended)
			var inX []layout.ID
			for _, id := range ended {
				if id != ids[2] {
					inX = append(inX, id)
				}
			}
			if k.Width == 0 {
				require.Equal(s.T, []layout.ID{ids[0], ids[1], ids[3]}, inX)
			}
		}
	}
	modeltest.PlayUnknown(t, plays)
}

// TestLanesThatHaveOnlyUsedTheirRateAreRemoved with their kind, and keep no total width from being set.
func TestLanesThatHaveOnlyUsedTheirRateAreRemoved(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Rate: 1, Every: 24 * time.Hour})
	first := s.submit("used")
	waits := s.submit("used")
	require.Equal(t, []layout.ID{first}, s.end())
	require.ErrorIs(t, s.L.RemoveKind(s.Ctx, "k"), fdbmodel.ErrInUse, "one is in line")
	_, _, err := s.C.Cancel(s.Ctx, waits, "")
	require.NoError(t, err)
	require.NoError(t, s.L.SetKind(s.Ctx, "k", layout.LaneKind{Rate: 1, Every: 24 * time.Hour, Total: 3}))
	s.check()
	require.NoError(t, s.L.RemoveKind(s.Ctx, "k"))
	s.check()
	require.NoError(t, s.L.SetKind(s.Ctx, "k", layout.LaneKind{}))
	again := s.submit("used")
	require.Equal(t, []layout.ID{again}, s.end())
	s.check()
}
