package lanes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// admit has a janitor look once at the lanes that are due.
func (s laneStage) admit() (lanes int, next time.Time) {
	lanes, next, err := s.L.AdmitDue(s.Ctx)
	require.NoError(s.T, err)
	return lanes, next
}

// set writes keys past the model.
func (s laneStage) set(change func(tx kv.Attempt, keys layout.Keyspace)) {
	_, err := kv.Transact(s.Ctx, s.C.Database(), kv.Retry{}, func(tx kv.Attempt) error {
		change(tx, s.C.Keys())
		return nil
	})
	require.NoError(s.T, err)
}

func TestWhatIsSubmittedTogetherGetsInLineByPriority(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	subs := s.inLanes("x", "x", "x")
	subs[1].Spec.Priority, subs[2].Spec.Priority = 9, 5
	got, err := s.C.Submit(s.Ctx, subs)
	require.NoError(t, err)
	require.Equal(t, []layout.ID{got[2].ID, got[0].ID}, s.line("x"), "the most urgent one is admitted")
	s.check()
}

// TestEndsBetweenThoseInLine ends, in one transaction, futures between whose ids are those of the next
// in line: the first can't be read any more by the transaction that ends them.
func TestEndsBetweenThoseInLine(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Width: 4})
	subs := s.inLanes("x", "x", "x", "x", "x", "x", "x", "x")
	for i := range subs {
		subs[i].Spec.Priority = uint8(5 * (i % 2))
	}
	_, err := s.C.Submit(s.Ctx, subs)
	require.NoError(t, err)
	for range 2 {
		claimed := s.Claim(s.Worker)
		require.Len(t, claimed, 4)
		var ends []fdbmodel.Completion
		for i := range claimed {
			ends = append(ends, fdbmodel.Completion{Future: &claimed[i], Result: &layout.Result{}})
		}
		outcomes, err := s.Worker.Finish(s.Ctx, ends)
		require.NoError(t, err)
		require.Equal(t, []fdbmodel.Outcome{fdbmodel.Applied, fdbmodel.Applied, fdbmodel.Applied, fdbmodel.Applied}, outcomes)
		s.check()
	}
}

// TestWhoGetsInLineOvertakesNobody has one transaction free a slot and put another future
// in line.
func TestWhoGetsInLineOvertakesNobody(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"of its priority": 0, "unless it is more urgent": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, layout.LaneKind{})
			first := s.submit("x")
			user := s.submit("x", prior(uint8(want)), func(s *fdbmodel.Submission) { s.Inputs = []layout.ID{first} })
			both := []layout.ID{s.submit("x"), user}
			require.Equal(t, both[:1], s.line("x"))
			require.Equal(t, []layout.ID{first}, s.end())
			require.Equal(t, []layout.ID{both[1-want]}, s.line("x"))
			s.check()
		})
	}
}

// TestPlacesOfNobody are skipped if they can't be read, and else removed.
func TestPlacesOfNobody(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	s.submit("x")
	ids := []layout.ID{s.submit("x"), s.submit("x")}
	s.set(func(tx kv.Attempt, keys layout.Keyspace) {
		for order, value := range [][]byte{newerRecord, layout.Encode(&layout.LineEntry{ID: ids[1]})} {
			tx.Set(append(keys.LineAt(s.lane("x"), layout.MaxPriority, 0), byte(0x14+order), 1), value)
		}
	})
	require.Len(t, s.end(), 1)
	require.Equal(t, ids[:1], s.end(), "nobody comes earlier for it")
	require.Equal(t, ids[1:], s.end())
	v, err := s.L.View(s.Ctx, s.lane("x"), 0)
	require.NoError(t, err)
	require.True(t, v.More, "a newer version may know who has the other place")
	require.True(t, v.Lined)
}

// TestAnEndOfOneInLine ends a future that is in line by mistake.
func TestAnEndOfOneInLine(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	first, second := s.submit("x"), s.submit("x")
	s.set(func(tx kv.Attempt, keys layout.Keyspace) {
		value := layout.Encode(&layout.LineEntry{ID: first})
		tx.Set(append(keys.LineAt(s.lane("x"), layout.MaxPriority, 0), 0x14, 1), value)
	})
	require.Equal(t, []layout.ID{first}, s.end())
	require.Equal(t, []layout.ID{second}, s.end())
	require.Empty(t, s.line("x"))
	s.check()
}

// TestJanitorsLookAtLanesInTime are the times at which AdmitDue is called again.
func TestJanitorsLookAtLanesInTime(t *testing.T) {
	t.Parallel()
	second := func(n int) layout.LaneKind {
		return layout.LaneKind{Width: 9, Rate: 1, Every: time.Duration(n) * time.Second}
	}
	t.Run("never at those that wait for an end", func(t *testing.T) {
		t.Parallel()
		for name, k := range map[string]layout.LaneKind{
			"a slot": {}, "a turn": {Width: 2, Total: 1}, "a bundle": {Width: 2, Bundle: "go:f"},
		} {
			s := newLaneStage(t, k)
			for _, key := range []string{"x", "y", "x", "y"} {
				s.submit(key)
			}
			lanes, next := s.admit()
			require.Zero(t, lanes, name)
			require.True(t, next.IsZero(), name)
		}
	})
	t.Run("once a rate is used no more", func(t *testing.T) {
		t.Parallel()
		s := newLaneStage(t, second(1))
		start := s.Clock.Now()
		s.submit("x")
		require.Len(t, s.end(), 1)
		_, next := s.admit()
		require.Equal(t, start.Add(time.Second), next.In(start.Location()))
		s.Clock.Advance(time.Second)
		s.admit()
		all, err := s.L.List(s.Ctx, "k", "", 10)
		require.NoError(t, err)
		require.Empty(t, all, "it leaves nothing behind")
	})
	t.Run("the earliest first", func(t *testing.T) {
		t.Parallel()
		s := newLaneStage(t, second(1))
		require.NoError(t, s.L.SetKind(s.Ctx, "slow", second(10)))
		require.NoError(t, s.L.SetKind(s.Ctx, "slower", second(20)))
		s.Clock.Advance(time.Hour)
		for range 3 {
			for _, kind := range []string{"slow", "k", "slower"} {
				s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Lane = layout.Lane{Kind: kind, Key: "x"} })
			}
		}
		s.Clock.Advance(20 * time.Second)
		lanes, next := s.admit()
		require.Equal(t, 3, lanes)
		require.Equal(t, s.Clock.Now().Add(time.Second), next.In(s.Clock.Now().Location()))
	})
	t.Run("at many one after the other", func(t *testing.T) {
		t.Parallel()
		s := newLaneStage(t, second(1))
		for i := range 40 {
			s.submit(fmt.Sprint(i))
			s.submit(fmt.Sprint(i))
		}
		s.Clock.Advance(time.Second)
		s.Faults.FailNext(faultkv.UnknownLost, func(tag string) bool { return tag == "futura-lanes" })
		lanes, next := s.admit()
		require.Equal(t, 32, lanes, "each counts once")
		require.False(t, next.After(s.Clock.Now()), "others may be due")
		lanes, _ = s.admit()
		require.Equal(t, 8, lanes)
	})
	t.Run("once at a lane that is not due", func(t *testing.T) {
		t.Parallel()
		s := newLaneStage(t, second(1))
		s.set(func(tx kv.Attempt, keys layout.Keyspace) { tx.Set(keys.LaneDue(s.lane("x"), 1), nil) })
		lanes, _ := s.admit()
		require.Equal(t, 1, lanes)
		lanes, next := s.admit()
		require.Zero(t, lanes)
		require.True(t, next.IsZero())
	})
}

func TestSettingsOfLanesHoldForAllLanes(t *testing.T) {
	t.Parallel()
	t.Run("wider", func(t *testing.T) {
		t.Parallel()
		s := newLaneStage(t, layout.LaneKind{})
		var keys []string
		for i := 0; len(keys) < 40; i++ {
			if key := fmt.Sprint(i); layout.ShardOf(key, s.C.Config().Shards) == 0 {
				keys = append(keys, key)
				s.submit(key)
				s.submit(key)
			}
		}
		for range 140 {
			s.submit("long")
		}
		require.NoError(t, s.L.SetKind(s.Ctx, "k", layout.LaneKind{Width: 200}))
		for _, key := range keys {
			require.Equal(t, 2, s.open(key))
		}
		require.Equal(t, 1+128, s.open("long"), "a transaction is bounded")
	})
	for name, to := range map[string][2]layout.LaneKind{
		"total":      {{Width: 9, Total: 1}, {Width: 9, Total: 2}},
		"rate":       {{Width: 9, Rate: 1, Every: time.Hour}, {Width: 9, Rate: 1 << 19, Every: time.Hour}},
		"period":     {{Width: 9, Rate: 1, Every: time.Hour}, {Width: 9, Rate: 1, Every: time.Millisecond}},
		"not paused": {{Width: 9, Total: 1}, {Width: 9, Total: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, to[0])
			s.submit("x")
			s.submit("x")
			require.Equal(t, 1, s.open("x"))
			if name == "not paused" {
				require.NoError(t, s.L.PauseKind(s.Ctx, "k", true))
			}
			require.NoError(t, s.L.SetKind(s.Ctx, "k", to[1]))
			s.Clock.Advance(time.Minute)
			s.admit()
			if name == "not paused" {
				require.Equal(t, 1, s.open("x"), "a pause outlives new settings")
				require.NoError(t, s.L.PauseKind(s.Ctx, "k", false))
			}
			require.Equal(t, 2, s.open("x"))
			s.check()
		})
	}
}

// TestKindsOfLanesSeeWhoComesMeanwhile has a future get in line before the commit of a
// change that lanes with futures refuse.
func TestKindsOfLanesSeeWhoComesMeanwhile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(laneStage, *fdbmodel.Cluster) error{
		"remove": func(s laneStage, c *fdbmodel.Cluster) error { return lanes.Of(c).RemoveKind(s.Ctx, "k") },
		"total": func(s laneStage, c *fdbmodel.Cluster) error {
			return lanes.Of(c).SetKind(s.Ctx, "k", layout.LaneKind{Total: 3})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, layout.LaneKind{})
			c := s.Interrupted("futura-lanes", func() { s.submit("x") })
			require.ErrorIs(t, change(s, c), fdbmodel.ErrInUse)
			s.check()
		})
	}
}

func TestATotalWidthLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Width: 2, Total: 1})
	s.submit("x")
	s.submit("y")
	require.Len(t, append(s.end(), s.end()...), 2)
	s.set(func(tx kv.Attempt, keys layout.Keyspace) {
		value, err := tx.Get(keys.LaneTotal("k")).Wait(s.Ctx)
		require.NoError(t, err)
		require.Nil(t, value)
	})
}

func TestAFutureWithoutALaneHasNothingOfOne(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Bundle: "go:f"})
	id := s.Submit(func(s *fdbmodel.Submission) { s.Spec.Aside, s.Spec.Member, s.Spec.Bundle = true, true, true })
	row, err := s.C.Get(s.Ctx, id)
	require.NoError(t, err)
	require.False(t, row.Spec.Aside || row.Spec.Member || row.Spec.Bundle)
	s = newLaneStage(t, layout.LaneKind{})
	near := s.Submit()
	_, err = s.C.Submit(s.Ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f", Lane: s.lane("x"), Near: near,
		MustBeNear: true}}})
	require.ErrorIs(t, err, layout.ErrBadSpec)
	require.ErrorContains(t, err, "lane")
}

// TestALaneHasNoneOfTheLineOfOneWhoseKeyGoesOnWithAZeroByte has two lanes in one shard, of which one key begins as the
// other one: what ends in the one lets nobody start in the other.
func TestALaneHasNoneOfTheLineOfOneWhoseKeyGoesOnWithAZeroByte(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{MaxWaiting: 2})
	shards, longer := s.C.Config().Shards, "x\x00"
	for layout.ShardOf(longer, shards) != layout.ShardOf("x", shards) {
		longer += "y"
	}
	runs := s.submit(longer)
	waits := []layout.ID{s.submit(longer), s.submit(longer)}
	own := []layout.ID{s.submit("x"), s.submit("x"), s.submit("x")}
	require.Equal(t, own[1:], s.line("x"))
	require.Equal(t, waits, s.line(longer))
	s.check()
	for range own {
		for _, f := range s.Claim(s.Worker) {
			require.NotContains(t, waits, f.ID)
			if f.ID != runs {
				s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Result: &layout.Result{}})
			}
		}
		s.check()
	}
	require.Empty(t, s.Claim(s.Worker))
	require.Equal(t, waits, s.line(longer))
	require.Zero(t, s.open("x"))
}
