package joblog_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

var jobsOf = joblog.Consumer{Queue: "q", Name: "c"}

// appendJobs appends jobs that are named by their indexes.
func appendJobs(s *modeltest.Stage, sequence int64, n int) int64 {
	s.T.Helper()
	last, err := joblog.Of(s.C).Last(s.Ctx, "q")
	require.NoError(s.T, err)
	var jobs [][]byte
	for i := range n {
		jobs = append(jobs, fmt.Append(nil, last+1+int64(i)))
	}
	first, appended, err := joblog.Of(s.C).Append(s.Ctx, joblog.Append{Queue: "q", Producer: "p", Sequence: sequence,
		Jobs: jobs})
	require.NoError(s.T, err)
	require.True(s.T, appended)
	require.Equal(s.T, last+1, first)
	return first
}

func takeJobs(s *modeltest.Stage, t joblog.Take) *joblog.Lease {
	s.T.Helper()
	lease, _, err := joblog.Of(s.C).Take(s.Ctx, jobsOf, t)
	require.NoError(s.T, err)
	require.NotNil(s.T, lease)
	return lease
}

// requireLog compares a log with the jobs that appendJobs makes.
func requireLog(s *modeltest.Stage, queue string, n int) {
	s.T.Helper()
	s.Faults.Flush()
	jobs, err := joblog.Of(s.C).Read(s.Ctx, queue, 1, 1000)
	require.NoError(s.T, err)
	require.Len(s.T, jobs, n)
	for i, job := range jobs {
		require.EqualValues(s.T, i+1, job.Index)
		require.Equal(s.T, fmt.Append(nil, i+1), job.Value)
	}
}

// TestUnknownResultsOfJobs is TestUnknownResults for logs of jobs and their consumers.
func TestUnknownResultsOfJobs(t *testing.T) {
	t.Parallel()
	emit := joblog.Effects{Emits: []joblog.Emit{{Queue: "next", Jobs: [][]byte{[]byte("1"), []byte("2")}}}}
	parked := []joblog.ParkedJob{{Index: 2, Attempts: 1, Error: "e"}}
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-append": func(s *modeltest.Stage, strike func()) {
			appendJobs(s, 1, 2)
			strike()
			appendJobs(s, 2, 3)
			requireLog(s, "q", 5)
		},
		"futura-lease that is taken": func(s *modeltest.Stage, strike func()) {
			strike()
			lease := takeJobs(s, joblog.Take{})
			s.Faults.Flush()
			appendJobs(s, 1, 1)
			require.NoError(s.T, lease.Commit(s.Ctx, 0, 1, nil, emit))
			requireLog(s, "next", 2)
		},
		"futura-lease that beats": func(s *modeltest.Stage, strike func()) {
			lease := takeJobs(s, joblog.Take{})
			strike()
			_, err := lease.Beat(s.Ctx, joblog.Trouble{Index: 7, Attempts: 1, Error: "e"}, 1)
			require.NoError(s.T, err)
			s.Faults.Flush()
			q, err := joblog.Of(s.C).Get(s.Ctx, "q")
			require.NoError(s.T, err)
			require.Equal(s.T, int64(7), q.Consumers[0].Lease.Failing)
		},
		"futura-lease that ends": func(s *modeltest.Stage, strike func()) {
			lease := takeJobs(s, joblog.Take{})
			strike()
			require.NoError(s.T, lease.Release(s.Ctx))
			next := takeJobs(s, joblog.Take{})
			s.Faults.Flush()
			_, err := next.Beat(s.Ctx, joblog.Trouble{}, 1)
			require.NoError(s.T, err)
		},
		"futura-progress": func(s *modeltest.Stage, strike func()) {
			appendJobs(s, 1, 3)
			lease := takeJobs(s, joblog.Take{})
			strike()
			require.NoError(s.T, lease.Commit(s.Ctx, 0, 3, parked, emit))
			requireLog(s, "next", 2)
			s.Faults.Flush()
			q, err := joblog.Of(s.C).Get(s.Ctx, "q")
			require.NoError(s.T, err)
			require.Equal(s.T, int64(3), q.Consumers[0].Progress.Index)
			require.Equal(s.T, 1, q.Consumers[0].Parked)
		},
		"futura-redo": func(s *modeltest.Stage, strike func()) {
			appendJobs(s, 1, 3)
			lease := takeJobs(s, joblog.Take{})
			require.NoError(s.T, lease.Commit(s.Ctx, 0, 3, parked, joblog.Effects{}))
			require.NoError(s.T, joblog.Of(s.C).RetryParked(s.Ctx, jobsOf, 2))
			strike()
			require.NoError(s.T, lease.Redo(s.Ctx, 2, nil, emit))
			requireLog(s, "next", 2)
			left, err := joblog.Of(s.C).Parked(s.Ctx, jobsOf, 0, 10)
			require.NoError(s.T, err)
			require.Empty(s.T, left)
		},
		"futura-parked that is dropped": func(s *modeltest.Stage, strike func()) {
			appendJobs(s, 1, 3)
			lease := takeJobs(s, joblog.Take{})
			require.NoError(s.T, lease.Commit(s.Ctx, 0, 3, parked, joblog.Effects{}))
			strike()
			require.NoError(s.T, joblog.Of(s.C).DropParked(s.Ctx, jobsOf, 2))
			s.Faults.Flush()
			require.ErrorIs(s.T, joblog.Of(s.C).RetryParked(s.Ctx, jobsOf, 2), fdbmodel.ErrNotFound)
		},
		"futura-trim": func(s *modeltest.Stage, strike func()) {
			appendJobs(s, 1, 3)
			lease := takeJobs(s, joblog.Take{})
			require.NoError(s.T, lease.Commit(s.Ctx, 0, 2, nil, joblog.Effects{}))
			strike()
			first, err := joblog.Of(s.C).Trim(s.Ctx, "q", 0)
			require.NoError(s.T, err)
			require.Equal(s.T, int64(3), first)
		},
		"futura-dropjobs": func(s *modeltest.Stage, strike func()) {
			appendJobs(s, 1, 3)
			strike()
			require.NoError(s.T, joblog.Of(s.C).Drop(s.Ctx, "q", "", false))
			appendJobs(s, 1, 2)
			requireLog(s, "q", 2)
		},
	})
}

func TestAppendsOfAProducerHappenOnce(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	jobs := func(sequence int64, jobs ...string) (int64, bool) {
		a := joblog.Append{Queue: "q", Producer: "p", Sequence: sequence, Keep: true}
		for _, job := range jobs {
			a.Jobs = append(a.Jobs, []byte(job))
		}
		first, appended, err := joblog.Of(s.C).Append(s.Ctx, a)
		require.NoError(t, err)
		return first, appended
	}
	first, appended := jobs(5, "1", "2")
	require.True(t, appended)
	require.EqualValues(t, 1, first)
	first, appended = jobs(5, "1", "2")
	require.False(t, appended)
	require.EqualValues(t, 1, first)
	_, appended = jobs(4, "0")
	require.False(t, appended)
	first, appended = jobs(6, "3")
	require.True(t, appended)
	require.EqualValues(t, 3, first)
	requireLog(s, "q", 3)

	_, _, err := joblog.Of(s.C).Append(s.Ctx, joblog.Append{Queue: "a b", Producer: "p", Sequence: 1})
	require.ErrorIs(t, err, layout.ErrBadName)
	_, _, err = joblog.Of(s.C).Append(s.Ctx, joblog.Append{Queue: "q", Producer: "p", Sequence: 7,
		Jobs: [][]byte{make([]byte, joblog.MaxJob+1)}})
	require.ErrorIs(t, err, fdbmodel.ErrTooLarge)
	_, _, err = joblog.Of(s.C).Append(s.Ctx, joblog.Append{Queue: "q", Producer: "p", Sequence: 7,
		Jobs: make([][]byte, joblog.MaxAppend+1)})
	require.ErrorIs(t, err, fdbmodel.ErrTooLarge)
}

// TestALogIsNoStepInAURL: one that has such a name already goes on.
func TestALogIsNoStepInAURL(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	for _, queue := range []string{".", ".."} {
		a := joblog.Append{Queue: queue, Producer: "p", Sequence: 1, Jobs: [][]byte{[]byte("1")}}
		_, _, err := joblog.Of(s.C).Append(s.Ctx, a)
		require.ErrorIs(t, err, layout.ErrBadName)
		s.Store(joblog.Keys(s.C.Keys()).Head(queue), layout.Encode(&joblog.Head{Last: 7}))
		first, appended, err := joblog.Of(s.C).Append(s.Ctx, a)
		require.NoError(t, err)
		require.True(t, appended)
		require.EqualValues(t, 8, first)
	}
	a := joblog.Append{Queue: "...", Producer: "p", Sequence: 1, Jobs: [][]byte{[]byte("1")}}
	_, _, err := joblog.Of(s.C).Append(s.Ctx, a)
	require.NoError(t, err)
}

// TestALostLeaseChangesNothing has a second process take over from one that seemed
// dead.
func TestALostLeaseChangesNothing(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	appendJobs(s, 1, 5)
	first := takeJobs(s, joblog.Take{About: "first"})
	require.NoError(t, first.Commit(s.Ctx, 0, 2, nil, joblog.Effects{}))
	none, seen, err := joblog.Of(s.C).Take(s.Ctx, jobsOf, joblog.Take{})
	require.NoError(t, err)
	require.Nil(t, none)
	_, err = first.Beat(s.Ctx, joblog.Trouble{}, 1)
	require.NoError(t, err)
	none, seen2, err := joblog.Of(s.C).Take(s.Ctx, jobsOf, joblog.Take{Observed: seen})
	require.NoError(t, err)
	require.Nil(t, none, "it has changed since")
	second := takeJobs(s, joblog.Take{About: "second", Observed: seen2})
	require.EqualValues(t, 2, second.Progress)

	_, err = first.Beat(s.Ctx, joblog.Trouble{}, 1)
	require.ErrorIs(t, err, joblog.ErrLeaseLost)
	effects := joblog.Effects{Emits: []joblog.Emit{{Queue: "next", Jobs: [][]byte{[]byte("1")}}}}
	require.ErrorIs(t, first.Commit(s.Ctx, 2, 3, nil, effects), joblog.ErrLeaseLost)
	require.ErrorIs(t, first.Redo(s.Ctx, 1, nil, effects), joblog.ErrLeaseLost)
	require.NoError(t, first.Release(s.Ctx))
	require.NoError(t, second.Commit(s.Ctx, 2, 3, nil, effects))
	require.ErrorIs(t, second.Commit(s.Ctx, 2, 3, nil, effects), joblog.ErrLeaseLost, "it goes back")
	requireLog(s, "next", 1)
}

func TestEffectsOfAJobHappenWithItsProgress(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	appendJobs(s, 1, 2)
	lease := takeJobs(s, joblog.Take{})
	key, refused := []byte("mine"), errors.New("refused")
	set := func(err error) func(context.Context, kv.Tx) error {
		return func(_ context.Context, tx kv.Tx) error {
			tx.Set(key, []byte("x"))
			return err
		}
	}
	err := lease.Commit(s.Ctx, 0, 1, nil, joblog.Effects{
		Emits: []joblog.Emit{{Queue: "next", Jobs: [][]byte{[]byte("1")}}},
		Apply: []func(context.Context, kv.Tx) error{set(refused)},
	})
	require.ErrorIs(t, err, refused)
	requireLog(s, "next", 0)
	require.NoError(t, lease.Commit(s.Ctx, 0, 1, nil, joblog.Effects{
		Emits: []joblog.Emit{{Queue: "next", Jobs: [][]byte{[]byte("1")}},
			{Queue: "next", Jobs: [][]byte{[]byte("2")}}},
		Apply: []func(context.Context, kv.Tx) error{set(nil)},
	}))
	requireLog(s, "next", 2)
	require.NoError(t, s.C.View(s.Ctx, func(tx kv.Attempt) error {
		value, err := tx.Get(key).Wait(s.Ctx)
		require.Equal(t, "x", string(value))
		return err
	}))
}

func TestParkedJobs(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	appendJobs(s, 1, 9)
	lease := takeJobs(s, joblog.Take{})
	require.NoError(t, lease.Commit(s.Ctx, 0, 6, []joblog.ParkedJob{
		{Index: 2, Attempts: 3, Error: "two", Value: []byte("2")}, {Index: 4, Attempts: 3, Error: "four"},
		{Index: 6, Attempts: 3, Error: "six"},
	}, joblog.Effects{}))
	require.ErrorIs(t, joblog.Of(s.C).RetryParked(s.Ctx, jobsOf, 3), fdbmodel.ErrNotFound)
	require.NoError(t, joblog.Of(s.C).RetryParked(s.Ctx, jobsOf, 2))
	require.NoError(t, joblog.Of(s.C).RetryParked(s.Ctx, jobsOf, 6))
	retries, err := lease.Beat(s.Ctx, joblog.Trouble{}, 10)
	require.NoError(t, err)
	require.Len(t, retries, 2)
	require.Equal(t, "2", string(retries[0].Value))
	failure := retries[0]
	failure.Attempts, failure.Error = 4, "again"
	require.NoError(t, lease.Redo(s.Ctx, 2, &failure, joblog.Effects{}))
	require.NoError(t, joblog.Of(s.C).DropParked(s.Ctx, jobsOf, 6))
	effects := joblog.Effects{Emits: []joblog.Emit{{Queue: "next", Jobs: [][]byte{[]byte("1")}}}}
	require.ErrorIs(t, lease.Redo(s.Ctx, 6, nil, effects), fdbmodel.ErrNotFound)
	requireLog(s, "next", 0)
	parked, err := joblog.Of(s.C).Parked(s.Ctx, jobsOf, 0, 10)
	require.NoError(t, err)
	require.Len(t, parked, 2)
	require.EqualValues(t, []any{int64(2), int64(4), "again", false},
		[]any{parked[0].Index, parked[0].Attempts, parked[0].Error, parked[0].Retrying})
	parked, err = joblog.Of(s.C).Parked(s.Ctx, jobsOf, 2, 10)
	require.NoError(t, err)
	require.Len(t, parked, 1)
	require.EqualValues(t, 4, parked[0].Index)
}

func TestTrimLeavesWhatAnyConsumerNeeds(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	appendJobs(s, 1, 10)
	first, err := joblog.Of(s.C).Trim(s.Ctx, "q", 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, first, "there is no consumer yet")
	fast := takeJobs(s, joblog.Take{})
	slow, _, err := joblog.Of(s.C).Take(s.Ctx, joblog.Consumer{Queue: "q", Name: "slow"}, joblog.Take{})
	require.NoError(t, err)
	require.NoError(t, fast.Commit(s.Ctx, 0, 9, nil, joblog.Effects{}))
	require.NoError(t, slow.Commit(s.Ctx, 0, 6, nil, joblog.Effects{}))
	first, err = joblog.Of(s.C).Trim(s.Ctx, "q", 2)
	require.NoError(t, err)
	require.EqualValues(t, 5, first)
	_, err = joblog.Of(s.C).Read(s.Ctx, "q", 4, 10)
	require.ErrorIs(t, err, joblog.ErrRemoved)
	jobs, err := joblog.Of(s.C).Read(s.Ctx, "q", 5, 10)
	require.NoError(t, err)
	require.Len(t, jobs, 6)
	late, _, err := joblog.Of(s.C).Take(s.Ctx, joblog.Consumer{Queue: "q", Name: "late"}, joblog.Take{})
	require.NoError(t, err)
	require.EqualValues(t, 4, late.Progress)
	end, _, err := joblog.Of(s.C).Take(s.Ctx, joblog.Consumer{Queue: "q", Name: "end"},
		joblog.Take{Initial: math.MaxInt64})
	require.NoError(t, err)
	require.EqualValues(t, 10, end.Progress)
	foreign, _, err := joblog.Of(s.C).Take(s.Ctx, joblog.Consumer{Queue: "elsewhere", Name: "c"},
		joblog.Take{Initial: 1000, Foreign: true})
	require.NoError(t, err)
	require.NoError(t, foreign.Commit(s.Ctx, 1000, 1001, nil, joblog.Effects{}))
	modeltest.RequireSound(t, s.C)
}

func TestProducersWithoutAUserAreForgotten(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	appendJobs(s, 1, 1)
	_, _, err := joblog.Of(s.C).Append(s.Ctx, joblog.Append{Queue: "q", Producer: "named", Sequence: 1, Keep: true,
		Jobs: [][]byte{[]byte("2")}})
	require.NoError(t, err)
	s.Clock.Advance(25 * time.Hour)
	_, err = joblog.Of(s.C).Trim(s.Ctx, "q", 0)
	require.NoError(t, err)
	appendJobs(s, 1, 1) // it is known no more
	_, appended, err := joblog.Of(s.C).Append(s.Ctx, joblog.Append{Queue: "q", Producer: "named", Sequence: 1, Keep: true,
		Jobs: [][]byte{[]byte("2")}})
	require.NoError(t, err)
	require.False(t, appended)
}

// TestProducersBehindManyThatStayAreForgotten has more producers that the user has named than one
// trim looks at.
func TestProducersBehindManyThatStayAreForgotten(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	appendJobs(s, 1, 1)
	kept := layout.Encode(&joblog.Producer{Sequence: 1, Keep: true})
	for i := range 1500 {
		s.Store(joblog.Keys(s.C.Keys()).Producer("q", fmt.Sprintf("a%04d", i)), kept)
	}
	s.Clock.Advance(25 * time.Hour)
	for range 2 {
		_, err := joblog.Of(s.C).Producer(s.Ctx, "q", "p")
		require.NoError(t, err)
		_, err = joblog.Of(s.C).Trim(s.Ctx, "q", 0)
		require.NoError(t, err)
	}
	_, err := joblog.Of(s.C).Producer(s.Ctx, "q", "p")
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	first, err := joblog.Of(s.C).Trim(s.Ctx, "q", 0) // from the first one on
	require.NoError(t, err)
	require.EqualValues(t, 1, first)
}

func TestListAndDropOfJobs(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	for _, queue := range []string{"c", "a", "b"} {
		_, _, err := joblog.Of(s.C).Append(s.Ctx, joblog.Append{Queue: queue, Producer: "p", Sequence: 1,
			Jobs: [][]byte{[]byte("x"), []byte("y")}})
		require.NoError(t, err)
	}
	b := joblog.Consumer{Queue: "b", Name: "one"}
	lease, _, err := joblog.Of(s.C).Take(s.Ctx, b, joblog.Take{About: "here"})
	require.NoError(t, err)
	require.NoError(t, lease.Commit(s.Ctx, 0, 1, []joblog.ParkedJob{{Index: 1}}, joblog.Effects{}))
	queues, err := joblog.Of(s.C).List(s.Ctx)
	require.NoError(t, err)
	require.Len(t, queues, 3)
	require.Equal(t, []string{"a", "b", "c"}, []string{queues[0].Name, queues[1].Name, queues[2].Name})
	require.Equal(t, "here", queues[1].Consumers[0].Lease.About)
	require.Equal(t, 1, queues[1].Consumers[0].Parked)
	require.ErrorIs(t, joblog.Of(s.C).Drop(s.Ctx, "b", "one", false), fdbmodel.ErrInUse)
	require.ErrorIs(t, joblog.Of(s.C).Drop(s.Ctx, "b", "", false), fdbmodel.ErrInUse)
	require.NoError(t, joblog.Of(s.C).Drop(s.Ctx, "b", "one", true))
	require.ErrorIs(t, lease.Commit(s.Ctx, 1, 2, nil, joblog.Effects{}), joblog.ErrLeaseLost)
	require.NoError(t, joblog.Of(s.C).Drop(s.Ctx, "b", "", false))
	require.ErrorIs(t, joblog.Of(s.C).Drop(s.Ctx, "b", "", false), fdbmodel.ErrNotFound)
	_, err = joblog.Of(s.C).Get(s.Ctx, "b")
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	queues, err = joblog.Of(s.C).List(s.Ctx)
	require.NoError(t, err)
	require.Len(t, queues, 2)
}
