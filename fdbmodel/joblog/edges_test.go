package joblog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

func TestLargestAppends(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	for sequence, c := range []struct {
		jobs, size int
		fits       bool
	}{
		{1, joblog.MaxJob, true}, {1, joblog.MaxJob + 1, false}, {joblog.MaxAppend, 1, true},
		{joblog.MaxAppend + 1, 1, false},
		{64, joblog.MaxJob, true}, {65, joblog.MaxJob, false},
	} {
		jobs := make([][]byte, c.jobs)
		for i := range jobs {
			jobs[i] = make([]byte, c.size)
		}
		_, _, err := joblog.Of(s.C).Append(s.Ctx, joblog.Append{Queue: "q", Producer: "p",
			Sequence: int64(sequence) + 1, Jobs: jobs})
		if c.fits {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, fdbmodel.ErrTooLarge)
		}
	}
}

// TestProducersAreForgotten a day after their last append, unless the user has named them,
// or they append meanwhile.
func TestProducersAreForgotten(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	from := func(producer string, sequence int64, keep bool) {
		_, _, err := joblog.Of(s.C).Append(s.Ctx, joblog.Append{Queue: "q", Producer: producer, Sequence: sequence,
			Keep: keep, Jobs: [][]byte{{1}}})
		require.NoError(t, err)
	}
	known := func() (names []string) {
		for _, name := range []string{"busy", "kept", "kept once", "own"} {
			if _, err := joblog.Of(s.C).Producer(s.Ctx, "q", strings.ReplaceAll(name, " ", "-")); err == nil {
				names = append(names, name)
			}
		}
		return names
	}
	from("own", 1, false)
	from("busy", 1, false)
	from("kept", 1, true)
	from("kept-once", 1, true)
	from("kept-once", 2, false)
	s.Clock.Advance(24 * time.Hour)
	_, err := joblog.Of(s.C).Trim(s.Ctx, "q", 0)
	require.NoError(t, err)
	require.Len(t, known(), 4)
	s.Clock.Advance(time.Second)
	_, err = joblog.Of(s.Interrupted("futura-trim", func() { from("busy", 2, false) })).Trim(s.Ctx, "q", 0)
	require.NoError(t, err)
	require.Equal(t, []string{"busy", "kept", "kept once"}, known())
}

// TestAConsumerThatComesMeanwhileKeepsItsJobs starts one before the commit that removes
// what all others have done.
func TestAConsumerThatComesMeanwhileKeepsItsJobs(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	appendJobs(s, 1, 5)
	lease := takeJobs(s, joblog.Take{})
	require.NoError(t, lease.Commit(s.Ctx, 0, 5, nil, joblog.Effects{}))
	c := s.Interrupted("futura-trim", func() {
		_, _, err := joblog.Of(s.C).Take(s.Ctx, joblog.Consumer{Queue: "q", Name: "late"}, joblog.Take{})
		require.NoError(t, err)
	})
	first, err := joblog.Of(c).Trim(s.Ctx, "q", 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, first)
	requireLog(s, "q", 5)
}

// TestDroppedJobsLeaveNothing: no retry that was asked for, and nothing of a consumer.
func TestDroppedJobsLeaveNothing(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	appendJobs(s, 1, 3)
	lease := takeJobs(s, joblog.Take{})
	require.NoError(t, lease.Commit(s.Ctx, 0, 2, []joblog.ParkedJob{
		{Index: 1, Error: strings.Repeat("x", 5000)}, {Index: 2, Error: "e"}}, joblog.Effects{}))
	parked, err := joblog.Of(s.C).Parked(s.Ctx, jobsOf, 0, 10)
	require.NoError(t, err)
	require.LessOrEqual(t, len(parked[0].Error), 500)
	marked := func(index int64) bool {
		value := []byte(nil)
		value = s.Read(joblog.Keys(s.C.Keys()).Retry("q", "c", index))
		return value != nil
	}
	for _, p := range parked {
		require.NoError(t, joblog.Of(s.C).RetryParked(s.Ctx, jobsOf, p.Index))
		require.True(t, marked(p.Index))
	}
	require.NoError(t, joblog.Of(s.C).DropParked(s.Ctx, jobsOf, 1))
	require.False(t, marked(1))
	require.NoError(t, joblog.Of(s.C).Drop(s.Ctx, "q", "c", true))
	require.False(t, marked(2))
}

// TestALogThatWasBegunAnewStays also if the attempt that removed the one before commits
// late.
func TestALogThatWasBegunAnewStays(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	appendJobs(s, 1, 5)
	s.Faults.FailNext(faultkv.UnknownLate, func(tag string) bool { return tag == "futura-dropjobs" })
	require.NoError(t, joblog.Of(s.C).Drop(s.Ctx, "q", "", false))
	appendJobs(s, 1, 3)
	requireLog(s, "q", 3)
}

func TestAConsumerThatStartsMeanwhileKeepsItsLog(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	appendJobs(s, 1, 5)
	c := s.Interrupted("futura-dropjobs", func() { takeJobs(s, joblog.Take{}) })
	require.ErrorIs(t, joblog.Of(c).Drop(s.Ctx, "q", "", false), fdbmodel.ErrInUse)
	requireLog(s, "q", 5)
	q, err := joblog.Of(s.C).Get(s.Ctx, "q")
	require.NoError(t, err)
	lease := takeJobs(s, joblog.Take{Observed: layout.Encode(q.Consumers[0].Lease)})
	require.NoError(t, lease.Release(s.Ctx))
	c = s.Interrupted("futura-dropjobs", func() { takeJobs(s, joblog.Take{}) })
	require.ErrorIs(t, joblog.Of(c).Drop(s.Ctx, "q", "c", false), fdbmodel.ErrInUse)
}

func TestTroubleThatIsOverIsNotShown(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	appendJobs(s, 1, 1)
	lease := takeJobs(s, joblog.Take{})
	for _, trouble := range []joblog.Trouble{{Index: 1, Attempts: 2, Error: "e"}, {}} {
		_, err := lease.Beat(s.Ctx, trouble, 1)
		require.NoError(t, err)
		q, err := joblog.Of(s.C).Get(s.Ctx, "q")
		require.NoError(t, err)
		require.Equal(t, trouble.Error, q.Consumers[0].Lease.Error)
		require.Equal(t, trouble.Index, q.Consumers[0].Lease.Failing)
	}
}

func TestBoundsOfCalls(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	appendJobs(s, 1, 4)
	for _, limit := range []int{0, -1} {
		jobs, err := joblog.Of(s.C).Read(s.Ctx, "q", 1, limit)
		require.NoError(t, err)
		require.Empty(t, jobs, limit)
	}
	require.ErrorIs(t, joblog.Of(s.C).Drop(s.Ctx, "q", "a b", true), layout.ErrBadName)
}
