package joblog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
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
		"head":     joblog.Keys(k).Head("head"),
		"first":    joblog.Keys(k).First("first"),
		"progress": joblog.Keys(k).Progress("progress", "c"),
		"lease":    joblog.Keys(k).Lease("lease", "c"),
		"name":     joblog.Keys(k).Head("a b\x00"),
		"no name":  append(k.Shard(3, joblog.Subspace), 0xff),
		"nothing":  joblog.Keys(k).Head(""),
	} {
		if layout.CheckName("log", name) == nil {
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
