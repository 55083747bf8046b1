package jobqueue_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/internal/bubble"
)

var errPoison = errors.New("poison")

// sick is a consumer whose second of three jobs does what poison does.
type sick struct {
	*testing.T
	c        *jobqueue.Consumer[uint64]
	p        progress
	poison   atomic.Value // of func() error
	attempts atomic.Int32
}

// poisoned runs a consumer whose second of three jobs fails.
func poisoned(t *testing.T, o jobqueue.Options, fn func(s *sick)) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var jobs source
		s := &sick{T: t}
		s.poison.Store(func() error { return errPoison })
		worker := jobqueue.WorkerFunc[uint64](func(_ context.Context, job jobqueue.Job[uint64]) error {
			if job.Index != 2 {
				return nil
			}
			if n := s.attempts.Add(1); int(n) != job.Attempt {
				t.Errorf("attempt %d is called %d", n, job.Attempt)
			}
			return s.poison.Load().(func() error)()
		})
		var err error
		s.c, err = jobqueue.New(&jobs, &s.p, worker, o)
		require.NoError(t, err)
		require.NoError(t, s.c.Start(context.Background()))
		defer func() {
			_ = s.c.Stop(context.Background())
			<-s.c.Done()
			s.p.requireGrowing(t)
		}()
		jobs.push(3)
		s.c.Check()
		synctest.Wait()
		fn(s)
	})
}

func TestAFailingJobBlocks(t *testing.T) {
	o := jobqueue.Options{MaxProcessing: 2, Backoff: jobqueue.Backoff{Base: time.Second, Max: time.Minute}}
	poisoned(t, o, func(s *sick) {
		elapse(24 * time.Hour)
		synctest.Wait()
		require.Equal(s, uint64(1), s.p.at())
		require.Greater(s, s.attempts.Load(), int32(24*60/2))
		status := s.c.Status()
		require.Equal(s, 1, status.Waiting)
		require.Equal(s, 1, status.Ended)
		require.Len(s, status.Failing, 1)
		require.Equal(s, uint64(2), status.Failing[0].Index)
		require.ErrorIs(s, status.Failing[0].Err, errPoison)
		require.EqualValues(s, s.attempts.Load(), status.Failing[0].Attempts)
		require.True(s, status.Failing[0].Next.After(time.Now()))
		s.poison.Store(func() error { return nil })
		elapse(2 * time.Minute)
		synctest.Wait()
		require.Equal(s, uint64(3), s.p.at())
		require.Empty(s, s.c.Status().Failing)
	})
}

// TestAProgressThatIsTooLargeForItsStoreIsRetried has the program's own store return the model's error: it is no
// fault of the jobs.
func TestAProgressThatIsTooLargeForItsStoreIsRetried(t *testing.T) {
	o := jobqueue.Options{MaxProcessing: 2, Backoff: jobqueue.Backoff{Base: time.Second, Max: time.Minute}}
	poisoned(t, o, func(s *sick) {
		s.p.fail(fdbmodel.ErrTooLarge)
		s.poison.Store(func() error { return nil })
		elapse(2 * time.Minute)
		synctest.Wait()
		require.Equal(s, uint64(1), s.p.at())
		status := s.c.Status()
		require.ErrorIs(s, status.Trouble, fdbmodel.ErrTooLarge)
		require.Equal(s, 2, status.Ended)
		s.p.fail(nil)
		elapse(2 * time.Minute)
		synctest.Wait()
		require.Equal(s, uint64(3), s.p.at())
	})
}

func TestAFailingJobIsParked(t *testing.T) {
	o := jobqueue.Options{OnFailure: jobqueue.Park, MaxAttempts: 3}
	poisoned(t, o, func(s *sick) {
		elapse(time.Hour)
		synctest.Wait()
		require.Equal(s, uint64(3), s.p.at())
		require.Equal(s, int32(3), s.attempts.Load())
		require.Len(s, s.p.parked, 1)
		require.Equal(s, 3, s.p.parked[2].Attempts)
		require.ErrorIs(s, s.p.parked[2].Err, errPoison)
	})
}

func TestAFailingJobStops(t *testing.T) {
	o := jobqueue.Options{OnFailure: jobqueue.Stop, MaxAttempts: 3}
	poisoned(t, o, func(s *sick) {
		<-s.c.Done()
		require.ErrorIs(s, s.c.Err(), jobqueue.ErrJobFailed)
		require.ErrorIs(s, s.c.Err(), errPoison)
		require.Equal(s, int32(3), s.attempts.Load())
		require.Equal(s, uint64(1), s.p.at())
		require.ErrorIs(s, s.c.Stop(context.Background()), jobqueue.ErrJobFailed)
	})
}

func TestAPermanentErrorIsTheLastAttempt(t *testing.T) {
	require.NoError(t, jobqueue.Permanent(nil))
	o := jobqueue.Options{OnFailure: jobqueue.Park, MaxAttempts: 3}
	poisoned(t, o, func(s *sick) {
		s.poison.Store(func() error { return jobqueue.Permanent(errPoison) })
		elapse(time.Hour)
		synctest.Wait()
		require.Equal(s, uint64(3), s.p.at())
		require.Equal(s, int32(2), s.attempts.Load())
	})
}

// TestStopEndsTheWaitOfAFailingJob stops a consumer that will try a job again in
// minutes.
func TestStopEndsTheWaitOfAFailingJob(t *testing.T) {
	poisoned(t, jobqueue.Options{}, func(s *sick) {
		before := time.Now()
		require.NoError(s, s.c.Stop(context.Background()))
		require.Equal(s, before, time.Now())
		elapse(time.Hour)
		require.Equal(s, int32(1), s.attempts.Load())
		require.Equal(s, uint64(1), s.p.at())
	})
}

// TestAJobThatWasPassedOnFails has its worker report a failure after Run.
func TestAJobThatWasPassedOnFails(t *testing.T) {
	play(t, jobqueue.Options{}, func(s *scene) {
		s.push(1)
		s.NotifyJobFailed(jobqueue.Job[uint64]{Index: 1, Value: 1, Attempt: 1}, errPoison)
		s.NotifyJobFailed(jobqueue.Job[uint64]{Index: 7, Value: 7, Attempt: 1}, errPoison)
		synctest.Wait()
		require.Equal(s, 1, s.Status().Waiting)
		elapse(time.Minute)
		s.expect(0, 1, 1)
		s.NotifyJobFailed(jobqueue.Job[uint64]{Index: 1, Value: 1, Attempt: 1}, errPoison) // late
		synctest.Wait()
		require.Zero(s, s.Status().Waiting)
		elapse(time.Minute)
		s.expect(0, 1, 1)
		s.NotifyJobFailed(jobqueue.Job[uint64]{Index: 1, Value: 1, Attempt: 2}, errPoison)
		synctest.Wait()
		s.push(1)
		s.finish(2)
		s.NotifyJobFailed(jobqueue.Job[uint64]{Index: 2, Value: 2, Attempt: 1}, errPoison) // it has ended
		synctest.Wait()
		require.Equal(s, 1, s.Status().Ended)
		require.Equal(s, 1, s.Status().Waiting)
		s.finish(1) // late
		s.expect(2, 1, 1, 2)
		elapse(time.Hour)
		s.expect(2, 1, 1, 2)
	})
}

func TestAPanicIsAFailedAttempt(t *testing.T) {
	o := jobqueue.Options{OnFailure: jobqueue.Park, MaxAttempts: 2}
	poisoned(t, o, func(s *sick) {
		s.poison.Store(func() error { panic("at the job") })
		elapse(time.Hour)
		synctest.Wait()
		require.Equal(s, uint64(3), s.p.at())
		require.ErrorContains(s, s.p.parked[2].Err, "at the job")
	})
}
