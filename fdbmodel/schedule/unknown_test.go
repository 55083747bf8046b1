package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/schedule"
)

// TestUnknownResultsOfSchedules is TestUnknownResults for schedules.
func TestUnknownResultsOfSchedules(t *testing.T) {
	t.Parallel()
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-schedule that is made": func(s *modeltest.Stage, strike func()) {
			record := schedule.Record{Name: "report", Every: time.Hour, Spec: layout.Spec{Function: "go:f"}}
			strike()
			made, created, err := schedule.Of(s.C).Put(s.Ctx, record, true)
			require.NoError(s.T, err)
			require.True(s.T, created)
			s.Faults.Flush()
			found, err := schedule.Of(s.C).Get(s.Ctx, "report")
			require.NoError(s.T, err)
			require.Equal(s.T, made, found)
		},
		"futura-schedule that fires": func(s *modeltest.Stage, strike func()) {
			put(s)
			strike()
			fire(s)
			s.Faults.Flush()
			require.Zero(s.T, fire(s))
			require.Equal(s.T, int64(1), s.Counted(layout.Ready))
			require.EqualValues(s.T, 1, stateOf(s).Fired)
		},
		"futura-schedule that is triggered": func(s *modeltest.Stage, strike func()) {
			put(s)
			strike()
			id, err := schedule.Of(s.C).Trigger(s.Ctx, "report")
			require.NoError(s.T, err)
			s.Faults.Flush()
			require.Equal(s.T, layout.Ready, s.State(id))
			require.Equal(s.T, int64(1), s.Counted(layout.Ready))
			require.Len(s.T, stateOf(s).Runs, 1)
		},
		"futura-schedule that is paused": func(s *modeltest.Stage, strike func()) {
			put(s)
			strike()
			_, err := schedule.Of(s.C).Pause(s.Ctx, "report", "why")
			require.NoError(s.T, err)
			s.Faults.Flush()
			require.Zero(s.T, fire(s))
			strike()
			_, err = schedule.Of(s.C).Resume(s.Ctx, "report")
			require.NoError(s.T, err)
			s.Faults.Flush()
			require.Equal(s.T, 1, fire(s))
		},
		"futura-schedule that is removed": func(s *modeltest.Stage, strike func()) {
			put(s)
			strike()
			require.NoError(s.T, schedule.Of(s.C).Remove(s.Ctx, "report"))
			s.Faults.Flush()
			require.ErrorIs(s.T, schedule.Of(s.C).Remove(s.Ctx, "report"), fdbmodel.ErrNotFound)
			require.Zero(s.T, fire(s))
		},
	})
}
