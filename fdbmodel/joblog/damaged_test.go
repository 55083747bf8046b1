package joblog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

func appendJob(s *modeltest.Stage, queue string) {
	job := joblog.Append{Queue: queue, Jobs: [][]byte{[]byte("1")}, Producer: "p", Sequence: 1}
	_, _, err := joblog.Of(s.C).Append(s.Ctx, job)
	require.NoError(s.T, err)
}

// TestADamagedLogOfJobsIsLeftOut damages each record of one log of jobs: others are listed,
// and go on.
func TestADamagedLogOfJobsIsLeftOut(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	k := s.C.Keys()
	for name, key := range map[string][]byte{
		"head":     k.JobsPart("head", layout.JobsHeadPart),
		"first":    k.JobsPart("first", layout.JobsFirstPart),
		"progress": k.JobsNamed("progress", layout.JobsProgressPart, "c"),
		"lease":    k.JobsNamed("lease", layout.JobsLeasesPart, "c"),
		"name":     tuple.AppendString(k.Jobs("a b\x00"), layout.JobsHeadPart),
		"no name":  append(k.Shard(3, layout.SubJobs), 0xff),
		"nothing":  tuple.AppendString(k.Jobs(""), layout.JobsHeadPart),
	} {
		if layout.CheckJobName("log", name) == nil {
			appendJob(s, name)
		}
		s.Store(key, []byte{layout.RecordVersion, 0xc1})
	}
	appendJob(s, "good")
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
