package jobqueue_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/internal/bubble"
)

// scene is a consumer of three jobs at a time over jobs, progress and worker in
// memory, in virtual time.
type scene struct {
	*testing.T
	jobs     source
	progress progress
	worker   passing
	*jobqueue.Consumer[uint64]
}

// play runs a test with a started consumer, and stops it.
func play(t *testing.T, o jobqueue.Options, fn func(s *scene)) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		s := &scene{T: t}
		if o.MaxProcessing == 0 {
			o.MaxProcessing = 3
		}
		s.restart(o)
		defer func() { s.crash() }()
		fn(s)
		s.progress.requireGrowing(t)
	})
}

// restart starts a new consumer over the same jobs and progress.
func (s *scene) restart(o jobqueue.Options) {
	s.worker.mu.Lock()
	s.worker.ran = nil
	s.worker.mu.Unlock()
	var err error
	s.Consumer, err = jobqueue.New(&s.jobs, &s.progress, &s.worker, o)
	require.NoError(s, err)
	require.NoError(s, s.Start(context.Background()))
	<-s.Ready()
	synctest.Wait()
}

// crash ends the consumer without waiting for its jobs.
func (s *scene) crash() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Stop(ended)
	<-s.Done()
}

// push adds a job, and has the consumer look, n times.
func (s *scene) push(n int) {
	for range n {
		s.jobs.push(1)
		s.Check()
		synctest.Wait()
	}
}

func (s *scene) finish(indexes ...uint64) {
	for _, index := range indexes {
		s.NotifyJobIsDone(index)
		synctest.Wait()
	}
}

// expect compares the jobs that were run, and how far the progress is.
func (s *scene) expect(processed uint64, ran ...uint64) {
	s.Helper()
	synctest.Wait()
	s.worker.requireRan(s.T, ran...)
	require.Equal(s, processed, s.progress.at())
	require.Equal(s, processed, s.LastProcessedIndex())
}

func TestConsumerStartsWithoutJobs(t *testing.T) {
	play(t, jobqueue.Options{}, func(s *scene) { s.expect(0) })
}

func TestConsumerStartsAtItsInitialIndex(t *testing.T) {
	play(t, jobqueue.Options{Initial: 5}, func(s *scene) {
		s.expect(5)
		s.push(7)
		s.expect(5, 6, 7)
		s.finish(6)
		s.expect(6, 6, 7)
	})
}

func TestConsumerRunsAJobThatIsNew(t *testing.T) {
	play(t, jobqueue.Options{}, func(s *scene) {
		s.push(1)
		s.expect(0, 1)
		require.Equal(s, 1, s.Size())
	})
}

func TestConsumerStoresAJobThatIsDone(t *testing.T) {
	play(t, jobqueue.Options{}, func(s *scene) {
		s.push(2)
		s.finish(1)
		s.expect(1, 1, 2)
		s.finish(2)
		s.expect(2, 1, 2)
		require.Zero(s, s.Size())
	})
}

func TestConsumerRunsNoMoreThanItMay(t *testing.T) {
	play(t, jobqueue.Options{}, func(s *scene) {
		s.push(4)
		s.expect(0, 1, 2, 3)
		s.finish(2)
		s.expect(0, 1, 2, 3, 4)
	})
}

func TestConsumerPausesFarAheadAndResumes(t *testing.T) {
	play(t, jobqueue.Options{MaxSearchAhead: 5}, func(s *scene) {
		s.push(5)
		s.finish(2, 3, 4, 5)
		s.push(2)
		s.expect(0, 1, 2, 3, 4, 5)
		require.Equal(s, 5, s.Size())
		s.finish(1)
		s.expect(5, 1, 2, 3, 4, 5, 6, 7)
	})
}

func TestConsumerWaitsForTheLowestJob(t *testing.T) {
	play(t, jobqueue.Options{}, func(s *scene) {
		s.push(4)
		s.finish(3, 2)
		s.expect(0, 1, 2, 3, 4)
		s.push(2)
		s.expect(0, 1, 2, 3, 4, 5)
		s.finish(1)
		s.expect(3, 1, 2, 3, 4, 5, 6)
		s.finish(4, 5, 6)
		s.expect(6, 1, 2, 3, 4, 5, 6)
	})
}

func TestConsumerMovesOverGapsOnly(t *testing.T) {
	play(t, jobqueue.Options{MaxProcessing: 4}, func(s *scene) {
		s.push(4)
		s.finish(3)
		s.expect(0, 1, 2, 3, 4)
		s.finish(4)
		s.expect(0, 1, 2, 3, 4)
		s.finish(1)
		s.expect(1, 1, 2, 3, 4)
		s.finish(2)
		s.expect(4, 1, 2, 3, 4)
		require.Zero(s, s.Size())
	})
}

func TestConsumerGoesOnAfterACrash(t *testing.T) {
	o := jobqueue.Options{MaxProcessing: 3}
	play(t, o, func(s *scene) {
		s.push(4)
		s.finish(3, 2)
		s.push(1)
		s.finish(1)
		s.push(2)
		s.finish(6)
		s.expect(3, 1, 2, 3, 4, 5, 6, 7)
		s.crash()
		s.restart(o)
		s.expect(3, 4, 5, 6)
	})
}

// TestConsumerStopsInOrder starts no job after Stop, waits for those that run, and
// stores what they have done.
func TestConsumerStopsInOrder(t *testing.T) {
	play(t, jobqueue.Options{}, func(s *scene) {
		s.push(4)
		stopped := make(chan error)
		go func() { stopped <- s.Stop(context.Background()) }()
		synctest.Wait()
		s.finish(1)
		s.expect(1, 1, 2, 3)
		s.finish(3)
		select {
		case <-s.Done():
			s.Fatal("job 2 is not done")
		default:
		}
		s.finish(2)
		require.NoError(s, <-stopped)
		<-s.Done()
		s.expect(3, 1, 2, 3)
		require.NoError(s, s.Err())
		require.ErrorIs(s, s.Start(context.Background()), jobqueue.ErrStarted)
	})
}

func TestConsumerStopsAtItsDeadline(t *testing.T) {
	play(t, jobqueue.Options{}, func(s *scene) {
		s.push(2)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.ErrorIs(s, s.Stop(ctx), context.DeadlineExceeded)
		<-s.Done()
		s.expect(0, 1, 2)
	})
}

func TestCheckBeforeStartDoesNothing(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		p := progress{stored: true, index: 100}
		c, err := jobqueue.New(&source{}, &p, &passing{}, jobqueue.Options{Initial: 10})
		require.NoError(t, err)
		c.Check()
		c.NotifyJobIsDone(1)
		require.Zero(t, c.LastProcessedIndex())
		require.NoError(t, c.Start(context.Background()))
		require.Equal(t, uint64(100), c.LastProcessedIndex())
		require.NoError(t, c.Stop(context.Background()))
	})
}

func TestStopBeforeStart(t *testing.T) {
	t.Parallel()
	c, err := jobqueue.New(&source{}, &progress{}, &passing{}, jobqueue.Options{})
	require.NoError(t, err)
	require.NoError(t, c.Stop(context.Background()))
	require.NoError(t, c.Stop(context.Background()))
	<-c.Done()
	require.ErrorIs(t, c.Start(context.Background()), jobqueue.ErrStarted)
}

func TestStartReturnsTheErrorOfItsProgress(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	p := progress{broken: broken}
	c, err := jobqueue.New(&source{}, &p, &passing{}, jobqueue.Options{})
	require.NoError(t, err)
	require.ErrorIs(t, c.Start(context.Background()), broken)
	p.fail(nil)
	require.NoError(t, c.Start(context.Background()))
	require.NoError(t, c.Stop(context.Background()))
}

// TestChecksAtOnceLookOnceMore holds up one look, has many goroutines ask for
// others, and counts how many there are.
func TestChecksAtOnceLookOnceMore(t *testing.T) {
	play(t, jobqueue.Options{}, func(s *scene) {
		gate := make(chan struct{})
		s.jobs.mu.Lock()
		s.jobs.gate = gate
		before := s.jobs.heads
		s.jobs.mu.Unlock()
		s.Check()
		synctest.Wait()
		var checks sync.WaitGroup
		for range 100 {
			checks.Go(s.Check)
		}
		checks.Wait()
		s.jobs.mu.Lock()
		require.Equal(s, before+1, s.jobs.heads, "at most one look at a time")
		s.jobs.mu.Unlock()
		close(gate)
		synctest.Wait()
		s.jobs.mu.Lock()
		require.Equal(s, before+2, s.jobs.heads, "one more look")
		s.jobs.mu.Unlock()
		s.push(1)
		s.expect(0, 1)
	})
}

// TestManyProducersAndFinishersAtOnce is run with the race detector.
func TestManyProducersAndFinishersAtOnce(t *testing.T) {
	t.Parallel()
	const n = 200
	var jobs source
	var p progress
	var mu sync.Mutex
	var ran []uint64
	over := make(chan struct{})
	worker := jobqueue.WorkerFunc[uint64](func(_ context.Context, job jobqueue.Job[uint64]) error {
		mu.Lock()
		defer mu.Unlock()
		ran = append(ran, job.Index)
		return nil
	})
	c, err := jobqueue.New(&jobs, &p, worker, jobqueue.Options{MaxProcessing: 7, OnAdvance: func(processed uint64) {
		if processed == n {
			close(over)
		}
	}})
	require.NoError(t, err)
	require.NoError(t, c.Start(context.Background()))
	var pushes sync.WaitGroup
	for range n {
		pushes.Go(func() { jobs.push(1); c.Check() })
	}
	pushes.Wait()
	<-over
	require.NoError(t, c.Stop(context.Background()))
	slices.Sort(ran)
	require.Len(t, ran, n)
	require.Len(t, slices.Compact(ran), n)
	p.requireGrowing(t)
}

func TestAFinishedJobHasTheConsumerLook(t *testing.T) {
	play(t, jobqueue.Options{MaxProcessing: 1}, func(s *scene) {
		s.push(1)
		s.jobs.push(1) // without a check
		synctest.Wait()
		s.expect(0, 1)
		s.finish(1)
		s.expect(1, 1, 2)
	})
}

func TestConsumerLooksFromTimeToTime(t *testing.T) {
	play(t, jobqueue.Options{Look: time.Minute}, func(s *scene) {
		s.jobs.push(1)
		elapse(59 * time.Second)
		s.expect(0)
		elapse(time.Second)
		s.expect(0, 1)
	})
}

func TestConsumerTellsOfItsProgress(t *testing.T) {
	var told []uint64
	play(t, jobqueue.Options{OnAdvance: func(processed uint64) { told = append(told, processed) }}, func(s *scene) {
		s.push(3)
		s.finish(2)
		require.Empty(s, told)
		s.finish(1)
		require.Equal(s, []uint64{2}, told)
		s.finish(3)
		require.Equal(s, []uint64{2, 3}, told)
		s.finish(3, 9)
		require.Equal(s, []uint64{2, 3}, told)
	})
}

// TestErrorsOfTheSourceAreRetried has neither jobs nor progress work for a while.
func TestErrorsOfTheSourceAreRetried(t *testing.T) {
	play(t, jobqueue.Options{}, func(s *scene) {
		broken := errors.New("broken")
		s.jobs.mu.Lock()
		s.jobs.broken = broken
		s.jobs.mu.Unlock()
		s.push(2)
		s.expect(0)
		require.ErrorIs(s, s.Status().Trouble, broken)
		s.jobs.mu.Lock()
		s.jobs.broken = nil
		s.jobs.mu.Unlock()
		elapse(time.Hour)
		s.expect(0, 1, 2)
		require.NoError(s, s.Status().Trouble)
		s.progress.fail(broken)
		s.finish(1)
		require.Zero(s, s.LastProcessedIndex())
		require.ErrorIs(s, s.Status().Trouble, broken)
		s.progress.fail(nil)
		elapse(time.Hour)
		s.expect(1, 1, 2)
	})
}

func TestOptionsOutsideOfTheirLimits(t *testing.T) {
	t.Parallel()
	for _, o := range []jobqueue.Options{
		{MaxProcessing: -1}, {MaxProcessing: 100_001}, {OnFailure: 3}, {MaxAttempts: -1}, {Look: -1},
		{Backoff: jobqueue.Backoff{Base: -1}},
	} {
		_, err := jobqueue.New(&source{}, &progress{}, &passing{}, o)
		require.ErrorIs(t, err, jobqueue.ErrBadOptions, "%+v", o)
	}
	var plain struct{ jobqueue.ConsumerProgress }
	_, err := jobqueue.New[uint64](&source{}, plain, &passing{}, jobqueue.Options{OnFailure: jobqueue.Park})
	require.ErrorIs(t, err, jobqueue.ErrBadOptions)
}
