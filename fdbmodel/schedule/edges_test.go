package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/schedule"
)

// change is how put changes what it makes.
type change = func(*schedule.Record)

// TestWhatFiresAfterAnOutage is how many futures of a schedule for each minute fire once
// somebody looks again, and how many count as missed.
func TestWhatFiresAfterAnOutage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		missed      string
		catchUp     int
		late        time.Duration
		fired, lost int64
	}{
		"on the edge of the grace": {schedule.MissedOnce, 0, time.Minute, 2, 0},
		"once, and in time":        {schedule.MissedOnce, 0, 10*time.Minute + 30*time.Second, 1, 10},
		"catch-up on the edge":     {schedule.MissedCatchUp, 9, time.Minute, 2, 0},
		"all of many":              {schedule.MissedCatchUp, 60, 50*time.Minute + 30*time.Second, 51, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewStage(t)
			put(s, func(r *schedule.Record) {
				r.Every, r.Missed, r.CatchUp, r.Grace, r.Deadline = time.Minute, c.missed, c.catchUp, time.Minute, 2*time.Hour
			})
			s.Clock.Advance(c.late)
			require.EqualValues(t, c.fired, fire(s))
			state := stateOf(s)
			require.Equal(t, c.lost, state.Missed)
			require.Equal(t, c.fired, state.Fired)
			for _, f := range s.Claim(s.Worker) {
				require.Equal(t, layout.Millis(s.Clock.Now().Add(2*time.Hour)), f.Spec.Deadline, "it counts from the submit")
			}
		})
	}
}

func TestJanitorsComeBackForASchedule(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	put(s)
	var walk schedule.Walk
	fired, next, err := schedule.Of(s.C).Fire(s.Ctx, &walk)
	require.NoError(t, err)
	require.Equal(t, 1, fired)
	require.True(t, next.Equal(s.Clock.Now().Add(time.Hour)))
}

// TestSchedulesThatCannotFireHoldUpNobody has more of them than one look takes.
func TestSchedulesThatCannotFireHoldUpNobody(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	for i := range 64 {
		name := fmt.Sprintf("a%d", i)
		put(s, func(r *schedule.Record) { r.Name = name })
		s.Store(schedule.Keys(s.C.Keys()).State(name), []byte{layout.RecordVersion + 1, 0xc1})
	}
	put(s)
	var walk schedule.Walk
	total := 0
	for range 2 {
		fired, _, _ := schedule.Of(s.C).Fire(s.Ctx, &walk)
		total += fired
	}
	require.Equal(t, 1, total)
}

func TestAPauseThatComesWhileAScheduleFires(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	put(s)
	c := s.Interrupted("futura-schedule", func() {
		_, err := schedule.Of(s.C).Pause(s.Ctx, "report", "why")
		require.NoError(t, err)
	})
	var walk schedule.Walk
	fired, _, err := schedule.Of(c).Fire(s.Ctx, &walk)
	require.NoError(t, err)
	require.Zero(t, fired)
	require.NotZero(t, stateOf(s).PausedAt)
	paused := stateOf(s).PausedAt
	s.Clock.Advance(time.Second)
	_, err = schedule.Of(s.C).Pause(s.Ctx, "report", "another")
	require.NoError(t, err)
	require.Equal(t, paused, stateOf(s).PausedAt, "since when it is paused")
	_, err = schedule.Of(s.C).Resume(s.Ctx, "report")
	require.NoError(t, err)
	require.Empty(t, stateOf(s).Reason)
}

// TestTimetablesThatChange set the next time anew, after the last one that fired.
func TestTimetablesThatChange(t *testing.T) {
	t.Parallel()
	daily := func(r *schedule.Record) { r.Every, r.Cron = 0, "0 0 * * *" }
	s := modeltest.NewStage(t)
	put(s, daily)
	midnight := time.UnixMilli(stateOf(s).Next).UTC()
	s.Clock.Advance(midnight.Sub(s.Clock.Now()))
	_, err := schedule.Of(s.C).Trigger(s.Ctx, "report")
	require.NoError(t, err)
	next := func(changes ...change) time.Time {
		put(s, changes...)
		return time.UnixMilli(stateOf(s).Next).UTC()
	}
	hourly := func(r *schedule.Record) { r.Every, r.Cron = 0, "0 * * * *" }
	require.Equal(t, midnight, next(hourly), "a trigger is none of its times")
	require.Equal(t, 1, fire(s))
	require.Equal(t, midnight.AddDate(0, 0, 1), next(daily), "it has fired")
	date := midnight.AddDate(0, 0, 1).Format(time.DateOnly)
	except := func(r *schedule.Record) { r.Except = []string{date} }
	require.Equal(t, midnight.AddDate(0, 0, 2), next(daily, except))
	_, _, err = schedule.Of(s.C).Put(s.Ctx, schedule.Record{Name: "many", Cron: "@daily",
		Missed: schedule.MissedCatchUp, CatchUp: schedule.MaxLine + 1, Spec: layout.Spec{Function: "go:f"}}, false)
	require.ErrorIs(t, err, layout.ErrBadSpec)
}

func TestPagesOfSchedulesAreFull(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		put(s, func(r *schedule.Record) { r.Name = name })
	}
	list, err := schedule.Of(s.C).List(s.Ctx, "", 3)
	require.NoError(t, err)
	require.Len(t, list, 3)
}

// TestTimesForWhichALaneHasRoomFire has more times fire at once than the lane of their futures has room for: those
// that find a place do, and the others are refused.
func TestTimesForWhichALaneHasRoomFire(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	require.NoError(t, lanes.Of(s.C).SetKind(s.Ctx, "k", layout.LaneKind{MaxWaiting: 3}))
	put(s, func(r *schedule.Record) {
		r.Every, r.Missed, r.CatchUp = time.Minute, schedule.MissedCatchUp, 100
		r.Spec.Lane = layout.Lane{Kind: "k", Key: "a"}
	})
	s.Clock.Advance(10*time.Minute - time.Second)
	require.Equal(t, 4, fire(s), "one is admitted")
	state := stateOf(s)
	require.EqualValues(t, 4, state.Fired)
	require.EqualValues(t, 6, state.Refused)
	require.Len(t, state.Runs, 10)
	for i, run := range state.Runs {
		require.Equal(t, i >= 4, run.ID.IsZero())
		require.Equal(t, i >= 4, strings.Contains(run.Error, "the lane is full"), run.Error)
	}
	s.RequireSound()
}
