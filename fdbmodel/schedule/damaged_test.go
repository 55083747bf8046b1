package schedule_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/schedule"
)

// TestADamagedScheduleHoldsUpNoOther damages each record of schedules that are due.
func TestADamagedScheduleHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	k := s.C.Keys()
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "good"} {
		_, _, err := schedule.Of(s.C).Put(s.Ctx, schedule.Record{Name: name, Cron: "* * * * *",
			Spec: layout.Spec{Function: "go:f"}}, true)
		require.NoError(t, err)
	}
	bad := []byte{layout.RecordVersion, 0xc1}
	s.Store(schedule.Keys(k).Definition("a"), bad)
	s.Store(schedule.Keys(k).State("b"), bad)
	s.Store(schedule.Keys(k).Definition("c"), layout.Encode(
		&schedule.Record{Every: -1, Grace: -1, CatchUp: -5, From: -1 << 62}))
	s.Store(schedule.Keys(k).State("d"), layout.Encode(&schedule.State{Next: -1 << 62}))
	s.Store(schedule.Keys(k).State("e"), layout.Encode(&schedule.State{Next: 1 << 62, Line: []int64{-5, 1 << 62}}))
	s.Store(schedule.Keys(k).State("f"), layout.Encode(&schedule.State{
		Next: layout.Millis(s.Clock.Now()), Line: slices.Repeat([]int64{1}, 2*schedule.MaxLine)}))
	s.Store(append(schedule.Keys(k).ByTime(), 0xff), bad)
	s.Store(schedule.Keys(k).At(1, "nothing"), bad)
	s.Store(schedule.Keys(k).At(-5, "e"), bad)
	s.Clock.Advance(2 * time.Minute)
	var walk schedule.Walk
	for range 3 {
		_, _, err := schedule.Of(s.C).Fire(s.Ctx, &walk)
		require.ErrorContains(t, err, `schedule "c"`)
	}
	good, err := schedule.Of(s.C).Get(s.Ctx, "good")
	require.NoError(t, err)
	require.Positive(t, good.State.Fired)
	list, err := schedule.Of(s.C).List(s.Ctx, "", 100)
	require.NoError(t, err)
	var names []string
	for i := range list {
		_, err := list[i].Upcoming(1)
		require.NoError(t, err)
		names = append(names, list[i].Name)
	}
	require.Contains(t, names, "good")
	require.NotContains(t, names, "c")
	var paged []string
	for after := ""; ; after = paged[len(paged)-1] {
		page, err := schedule.Of(s.C).List(s.Ctx, after, 1)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		require.Len(t, page, 1)
		paged = append(paged, page[0].Name)
	}
	require.Equal(t, names, paged)
	e, err := schedule.Of(s.C).Get(s.Ctx, "e")
	require.NoError(t, err)
	_, err = e.Upcoming(1)
	require.ErrorIs(t, err, layout.ErrBadRecord)
	report, err := audit.Check(s.Ctx, s.C, audit.Options{})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(report.Problems), 5)
}
