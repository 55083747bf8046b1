package joblog_test

import (
	"math"
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
	page, err := joblog.Of(s.C).Page(s.Ctx, "", 1)
	require.NoError(t, err)
	require.Equal(t, []string{"good"}, []string{page[0].Name}, "pages go on behind those that can't be read")
	report, err := audit.Check(s.Ctx, s.C, audit.Options{})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(report.Problems), 7)
}

// TestADamagedConsumerHidesNoOther has the progress of one of two consumers damaged, and the lease of a third: the log
// is shown with all of them, and keeps its jobs.
func TestADamagedConsumerHidesNoOther(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	appendJobs(s, 1, 4)
	require.NoError(t, takeJobs(s, joblog.Take{}).Commit(s.Ctx, 0, 2, nil, joblog.Effects{}))
	keys := joblog.Keys(s.C.Keys())
	s.Store(keys.Progress("q", "bad"), []byte{layout.RecordVersion, 0xc1})
	q, err := joblog.Of(s.C).Get(s.Ctx, "q")
	require.NoError(t, err)
	require.Equal(t, joblog.ConsumerState{Name: "bad", Unreadable: true}, q.Consumers[0])
	require.EqualValues(t, 2, q.Consumers[1].Progress.Index)
	require.NotNil(t, q.Consumers[1].Lease)
	s.Store(keys.Lease("q", "c"), []byte{layout.RecordVersion, 0xc1})
	q, err = joblog.Of(s.C).Get(s.Ctx, "q")
	require.NoError(t, err)
	require.True(t, q.Consumers[1].Unreadable)
	require.EqualValues(t, 2, q.Consumers[1].Progress.Index)
	_, err = joblog.Of(s.C).Trim(s.Ctx, "q", 0)
	require.ErrorIs(t, err, layout.ErrBadRecord)
	require.ErrorContains(t, err, `"bad"`)
}

// TestADamagedParkedJobHoldsUpNoOther damages parked jobs whose retry was asked for: the consumer keeps its
// lease, and others are listed and retried, however few are asked for.
func TestADamagedParkedJobHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	appendJobs(s, 1, 4)
	lease := takeJobs(s, joblog.Take{})
	var parked []joblog.ParkedJob
	for i := range int64(4) {
		parked = append(parked, joblog.ParkedJob{Index: i + 1, Attempts: 1})
	}
	require.NoError(t, lease.Commit(s.Ctx, 0, 4, parked, joblog.Effects{}))
	for i := range parked {
		require.NoError(t, joblog.Of(s.C).RetryParked(s.Ctx, jobsOf, parked[i].Index))
	}
	for index := range int64(2) {
		s.Store(joblog.Keys(s.C.Keys()).Parked("q", "c", index+1), []byte{layout.RecordVersion, 0xc1})
	}
	retries, err := lease.Beat(s.Ctx, joblog.Trouble{}, 1)
	require.NoError(t, err)
	require.Len(t, retries, 1)
	require.EqualValues(t, 3, retries[0].Index)
	for after, want := range map[int64][]int64{0: {3}, 3: {4}, 4: nil, math.MaxInt64: nil} {
		list, err := joblog.Of(s.C).Parked(s.Ctx, jobsOf, after, 1)
		require.NoError(t, err)
		var indexes []int64
		for i := range list {
			indexes = append(indexes, list[i].Index)
		}
		require.Equal(t, want, indexes, after)
	}
	require.NoError(t, joblog.Of(s.C).DropParked(s.Ctx, jobsOf, 1))
}

// TestJobsBeforeADamagedOneAreRead has the third job of a log damaged.
func TestJobsBeforeADamagedOneAreRead(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	appendJobs(s, 1, 4)
	s.Store(joblog.Keys(s.C.Keys()).Job("q", 3), []byte{layout.RecordVersion, 0xc1})
	jobs, err := joblog.Of(s.C).Read(s.Ctx, "q", 1, 100)
	require.NoError(t, err)
	require.Len(t, jobs, 2)
	_, err = joblog.Of(s.C).Read(s.Ctx, "q", 3, 100)
	require.ErrorIs(t, err, layout.ErrBadRecord)
}

// TestADamagedLeaseIsTaken once it was seen not to change.
func TestADamagedLeaseIsTaken(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	appendJobs(s, 1, 1)
	lost := takeJobs(s, joblog.Take{})
	s.Store(joblog.Keys(s.C.Keys()).Lease("q", "c"), []byte{layout.RecordVersion, 0xc1})
	lease, present, err := joblog.Of(s.C).Take(s.Ctx, jobsOf, joblog.Take{})
	require.NoError(t, err)
	require.Nil(t, lease)
	takeJobs(s, joblog.Take{Observed: present})
	require.ErrorIs(t, lost.Commit(s.Ctx, 0, 1, nil, joblog.Effects{}), joblog.ErrLeaseLost)
}

// TestALeaseThatCantBeReadIsASignOfLife: its holder may be of a newer version.
func TestALeaseThatCantBeReadIsASignOfLife(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	appendJobs(s, 1, 1)
	takeJobs(s, joblog.Take{})
	newer := []byte{layout.RecordVersion + 1, 0x80}
	s.Store(joblog.Keys(s.C.Keys()).Lease("q", "c"), newer)
	s.Store(joblog.Keys(s.C.Keys()).Head("q"), newer) // as that of its log
	signs, err := joblog.Of(s.C).SignsOfLife(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"consumer q/c": newer}, signs)
}
