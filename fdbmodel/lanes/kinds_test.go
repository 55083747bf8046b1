package lanes_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// fillKinds writes kinds of lanes past the model, until the cluster has n.
func (s laneStage) fillKinds(n int) {
	kinds, err := s.L.Kinds(s.Ctx)
	require.NoError(s.T, err)
	k := layout.LaneKind{}.WithDefaults()
	s.set(func(tx kv.Attempt, keys layout.Keyspace) {
		for i := range n - len(kinds) {
			tx.Set(keys.LaneKind(fmt.Sprintf("filler-%d", i)), layout.Encode(&k))
		}
	})
}

func (s laneStage) countKinds() int {
	kinds, err := s.L.Kinds(s.Ctx)
	require.NoError(s.T, err)
	return len(kinds)
}

func TestKindsOfLanesAreBounded(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	s.fillKinds(layout.MaxLaneKinds - 1)
	require.NoError(t, s.L.SetKind(s.Ctx, "last", layout.LaneKind{}))
	err := s.L.SetKind(s.Ctx, "more", layout.LaneKind{})
	require.ErrorIs(t, err, fdbmodel.ErrTooManyKinds)
	require.True(t, fdbmodel.IsMistake(err))
	require.ErrorContains(t, err, "at most 1000")
	require.NoError(t, s.L.SetKind(s.Ctx, "last", layout.LaneKind{Width: 2}), "one that is there may change")
	require.NoError(t, s.L.PauseKind(s.Ctx, "last", true))
	require.NoError(t, s.L.RemoveKind(s.Ctx, "last"))
	require.NoError(t, s.L.SetKind(s.Ctx, "more", layout.LaneKind{}))
	require.Equal(t, layout.MaxLaneKinds, s.countKinds())

	s.fillKinds(layout.MaxLaneKinds + 5)
	require.NoError(t, s.L.SetKind(s.Ctx, "more", layout.LaneKind{Width: 3}), "where there are more from before")
	s.check()
}

// TestTheLastKindOfLanesIsMadeOnce has another kind be made before the commit of one for
// which there was room.
func TestTheLastKindOfLanesIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	s.fillKinds(layout.MaxLaneKinds - 1)
	c := s.Interrupted("futura-lanes", func() { require.NoError(t, s.L.SetKind(s.Ctx, "first", layout.LaneKind{})) })
	require.ErrorIs(t, lanes.Of(c).SetKind(s.Ctx, "second", layout.LaneKind{}), fdbmodel.ErrTooManyKinds)
	require.Equal(t, layout.MaxLaneKinds, s.countKinds())
}

// TestUnknownResultOfTheLastKindOfLanes makes the last kind, by a commit whose result is
// unknown.
func TestUnknownResultOfTheLastKindOfLanes(t *testing.T) {
	t.Parallel()
	for _, fault := range []faultkv.Fault{faultkv.UnknownCommitted, faultkv.UnknownLost, faultkv.UnknownLate} {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, layout.LaneKind{})
			s.fillKinds(layout.MaxLaneKinds - 1)
			s.Faults.FailNext(fault, func(tag string) bool { return tag == "futura-lanes" })
			require.NoError(t, s.L.SetKind(s.Ctx, "last", layout.LaneKind{Width: 7}))
			s.Faults.Flush()
			require.Equal(t, layout.MaxLaneKinds, s.countKinds())
			k, err := s.L.Kind(s.Ctx, "last")
			require.NoError(t, err)
			require.Equal(t, 7, k.Width)
		})
	}
}

// TestAKindThatIsRemovedMeanwhileKeepsNoPause has a paused kind be removed before the commit of other settings: they
// are those of a new kind, which nobody has paused.
func TestAKindThatIsRemovedMeanwhileKeepsNoPause(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	require.NoError(t, s.L.SetKind(s.Ctx, "paused", layout.LaneKind{}))
	require.NoError(t, s.L.PauseKind(s.Ctx, "paused", true))
	c := s.Interrupted("futura-lanes", func() { require.NoError(t, s.L.RemoveKind(s.Ctx, "paused")) })
	require.NoError(t, lanes.Of(c).SetKind(s.Ctx, "paused", layout.LaneKind{Width: 2}))
	k, err := s.L.Kind(s.Ctx, "paused")
	require.NoError(t, err)
	require.Equal(t, 2, k.Width)
	require.False(t, k.Paused)
	s.check()
}

// TestSettingsThatAreWrittenAreNoError whatever becomes of the admissions that they lead to: a janitor makes them.
func TestSettingsThatAreWrittenAreNoError(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	s.submit("x")
	s.submit("x")
	ctx, cancel := context.WithCancel(s.Ctx)
	commits := 0
	s.Faults.FailNext(faultkv.Unavailable, func(tag string) bool {
		if commits++; commits == 2 {
			cancel()
		}
		return commits == 2
	})
	require.NoError(t, s.L.SetKind(ctx, "k", layout.LaneKind{Width: 2}))
	require.Equal(t, 1, s.open("x"))
	require.NoError(t, s.L.Sweep(s.Ctx))
	require.Equal(t, 2, s.open("x"))
	s.check()
}
