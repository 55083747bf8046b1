package lanes_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestALaneWhoseRateIsSpentForEverIsNoLoop has a record say that the rate is used up until
// the end of time: a janitor does not look at it again and again.
func TestALaneWhoseRateIsSpentForEverIsNoLoop(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Width: 9, Rate: 1, Every: time.Hour})
	s.submit("x")
	s.submit("x")
	s.Store(s.C.Keys().Lane(s.lane("x")), layout.Encode(&layout.LaneRecord{Open: 1, Lined: true, Spent: math.MaxInt64}))
	s.submit("x")
	for range 2 {
		_, next, err := s.L.AdmitDue(s.Ctx)
		require.NoError(t, err)
		require.True(t, next.IsZero() || next.After(s.Clock.Now()), "%v", next)
	}
	s.Clock.Advance(2 * time.Hour)
	_, _, err := s.L.AdmitDue(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, 2, s.open("x"))
}

// TestABundleBehindWhatCannotBeRead has the first in line unreadable, and bundles of one.
func TestABundleBehindWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(laneStage, layout.ID){
		"record": func(s laneStage, id layout.ID) { s.Store(s.C.Keys().Spec(id), []byte{layout.RecordVersion, 0xc1}) },
		"newer":  func(s laneStage, id layout.ID) { s.Store(s.C.Keys().Spec(id), newerRecord) },
		"place": func(s laneStage, id layout.ID) {
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(t, err)
			s.Store(s.C.Keys().Line(&row), []byte{layout.RecordVersion, 0xc1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLaneStage(t, layout.LaneKind{Bundle: "go:f", Most: 1})
			s.submit("x")
			first := s.submit("x")
			second := s.submit("x")
			damage(s, first)
			var ended []layout.ID
			rounds := 0
			for range 10 {
				for _, f := range s.Claim(s.Worker) {
					rounds++
					b, err := s.Worker.Gather(s.Ctx, &f, 100)
					require.NoError(t, err)
					for i := range b.Members {
						ended = append(ended, b.Members[i].ID)
						s.Finish(s.Worker, fdbmodel.Completion{Future: &b.Members[i], Result: &layout.Result{}})
					}
					s.Finish(s.Worker, fdbmodel.Completion{Future: &f, Result: &layout.Result{}})
				}
				s.Clock.Advance(50 * time.Millisecond)
				_, _, err := s.L.AdmitDue(s.Ctx)
				require.NoError(t, err)
			}
			require.Contains(t, ended, second)
			require.Less(t, rounds, 6)
		})
	}
}
