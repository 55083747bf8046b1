package fdbmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestUnknownResultsOfSchedules is TestUnknownResults for schedules.
func TestUnknownResultsOfSchedules(t *testing.T) {
	t.Parallel()
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-schedule that is made": func(s *modeltest.Stage, strike func()) {
			record := layout.ScheduleRecord{Name: "report", Every: time.Hour, Spec: layout.Spec{Function: "go:f"}}
			strike()
			made, created, err := s.C.PutSchedule(s.Ctx, record, true)
			require.NoError(s.T, err)
			require.True(s.T, created)
			s.Faults.Flush()
			found, err := s.C.Schedule(s.Ctx, "report")
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
			id, err := s.C.TriggerSchedule(s.Ctx, "report")
			require.NoError(s.T, err)
			s.Faults.Flush()
			require.Equal(s.T, layout.Ready, s.State(id))
			require.Equal(s.T, int64(1), s.Counted(layout.Ready))
			require.Len(s.T, stateOf(s).Runs, 1)
		},
		"futura-schedule that is paused": func(s *modeltest.Stage, strike func()) {
			put(s)
			strike()
			_, err := s.C.PauseSchedule(s.Ctx, "report", "why")
			require.NoError(s.T, err)
			s.Faults.Flush()
			require.Zero(s.T, fire(s))
			strike()
			_, err = s.C.ResumeSchedule(s.Ctx, "report")
			require.NoError(s.T, err)
			s.Faults.Flush()
			require.Equal(s.T, 1, fire(s))
		},
		"futura-overdue": func(s *modeltest.Stage, strike func()) {
			id := s.Submit(expires(s, time.Minute))
			s.Clock.Advance(time.Minute)
			strike()
			endOverdue(s)
			s.Faults.Flush()
			require.Equal(s.T, layout.KindExpired, failureOf(s, id).Kind)
			require.Equal(s.T, int64(1), s.Counted(layout.Failed))
			notices, _, err := s.Box.Listen(s.Ctx)
			require.NoError(s.T, err)
			require.Len(s.T, notices, 1)
		},
		"futura-finish that snoozes": func(s *modeltest.Stage, strike func()) {
			id := s.Submit()
			f := s.Claim(s.Worker)
			wait := time.Minute
			strike()
			outcome := s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Snooze: &wait})
			require.Contains(s.T, []fdbmodel.Outcome{fdbmodel.Applied, fdbmodel.Lost}, outcome)
			s.Faults.Flush()
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(s.T, err)
			require.Equal(s.T, 1, row.Attempts.Snoozed)
		},
		"futura-schedule that is removed": func(s *modeltest.Stage, strike func()) {
			put(s)
			strike()
			require.NoError(s.T, s.C.RemoveSchedule(s.Ctx, "report"))
			s.Faults.Flush()
			require.ErrorIs(s.T, s.C.RemoveSchedule(s.Ctx, "report"), fdbmodel.ErrNotFound)
			require.Zero(s.T, fire(s))
		},
	})
}
