package fdbmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

func (s laneStage) appendJob(queue string) {
	job := joblog.Append{Queue: queue, Jobs: [][]byte{[]byte("1")}, Producer: "p", Sequence: 1}
	_, _, err := joblog.Of(s.C).Append(s.Ctx, job)
	require.NoError(s.T, err)
}

// TestADamagedLogOfJobsIsLeftOut damages each record of one log of jobs: others are listed,
// and go on.
func TestADamagedLogOfJobsIsLeftOut(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	k := s.C.Keys()
	for name, key := range map[string][]byte{
		"head":     k.JobsPart("head", layout.JobsHeadPart),
		"first":    k.JobsPart("first", layout.JobsFirstPart),
		"progress": k.JobsNamed("progress", layout.JobsProgressPart, "c"),
		"lease":    k.JobsNamed("lease", layout.JobsLeasesPart, "c"),
		"name":     tuple.AppendString(k.Jobs("a b\x00"), layout.JobsHeadPart),
		"no name":  append(k.JobsOf(3), 0xff),
		"nothing":  tuple.AppendString(k.Jobs(""), layout.JobsHeadPart),
	} {
		if layout.CheckJobName("log", name) == nil {
			s.appendJob(name)
		}
		s.Store(key, []byte{layout.RecordVersion, 0xc1})
	}
	s.appendJob("good")
	queues, err := joblog.Of(s.C).List(s.Ctx)
	require.NoError(t, err)
	var names []string
	for i := range queues {
		names = append(names, queues[i].Name)
	}
	require.Contains(t, names, "good")
	report, err := audit.Check(s.Ctx, s.C, audit.Options{})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(report.Problems), 7)
}

// TestADamagedScheduleHoldsUpNoOther damages each record of schedules that are due.
func TestADamagedScheduleHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{})
	k := s.C.Keys()
	for _, name := range []string{"a", "b", "c", "d", "e", "good"} {
		_, _, err := s.C.PutSchedule(s.Ctx, layout.ScheduleRecord{Name: name, Cron: "* * * * *",
			Spec: layout.Spec{Function: "go:f"}}, true)
		require.NoError(t, err)
	}
	bad := []byte{layout.RecordVersion, 0xc1}
	s.Store(k.Schedule("a"), bad)
	s.Store(k.ScheduleState("b"), bad)
	s.Store(k.Schedule("c"), layout.Encode(&layout.ScheduleRecord{Every: -1, Grace: -1, CatchUp: -5, From: -1 << 62}))
	s.Store(k.ScheduleState("d"), layout.Encode(&layout.ScheduleState{Next: -1 << 62}))
	s.Store(k.ScheduleState("e"), layout.Encode(&layout.ScheduleState{Next: 1 << 62, Line: []int64{-5, 1 << 62}}))
	s.Store(append(k.SchedulesByTime(), 0xff), bad)
	s.Store(k.ScheduleAt(1, "nothing"), bad)
	s.Store(k.ScheduleAt(-5, "e"), bad)
	s.Clock.Advance(2 * time.Minute)
	var walk fdbmodel.ScheduleWalk
	for range 3 {
		_, _, err := s.C.FireSchedules(s.Ctx, &walk)
		require.ErrorContains(t, err, `schedule "c"`)
	}
	good, err := s.C.Schedule(s.Ctx, "good")
	require.NoError(t, err)
	require.Positive(t, good.State.Fired)
	list, err := s.C.Schedules(s.Ctx, "", 100)
	require.NoError(t, err)
	var names []string
	for i := range list {
		_, err := list[i].Upcoming(1)
		require.NoError(t, err)
		names = append(names, list[i].Name)
	}
	require.Contains(t, names, "good")
	require.NotContains(t, names, "c")
	e, err := s.C.Schedule(s.Ctx, "e")
	require.NoError(t, err)
	_, err = e.Upcoming(1)
	require.ErrorIs(t, err, layout.ErrBadRecord)
	report, err := audit.Check(s.Ctx, s.C, audit.Options{})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(report.Problems), 5)
}
