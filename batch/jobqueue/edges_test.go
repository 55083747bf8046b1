package jobqueue_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/internal/bubble"
)

// slowProgress stores an index once it is let through.
type slowProgress struct {
	progress
	gate chan struct{}
}

func (p *slowProgress) SetProcessedIndex(ctx context.Context, index uint64) error {
	select {
	case <-p.gate:
	case <-ctx.Done():
		return ctx.Err()
	}
	return p.progress.SetProcessedIndex(ctx, index)
}

// unreadProgress is read once it is let through.
type unreadProgress struct {
	progress
	read chan struct{}
}

func (p *unreadProgress) ProcessedIndex(ctx context.Context, initial uint64) (uint64, error) {
	<-p.read
	return p.progress.ProcessedIndex(ctx, initial)
}

// TestNothingWaitsForTheReadOfStart calls the other methods while the progress is read.
func TestNothingWaitsForTheReadOfStart(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		p := &unreadProgress{read: make(chan struct{})}
		worker := jobqueue.WorkerFunc[uint64](func(context.Context, jobqueue.Job[uint64]) error { return nil })
		c, err := jobqueue.New(&source{}, p, worker, jobqueue.Options{})
		require.NoError(t, err)
		started := make(chan error, 1)
		go func() { started <- c.Start(context.Background()) }()
		synctest.Wait()
		c.Check()
		require.Zero(t, c.Status())
		require.ErrorIs(t, c.Start(context.Background()), jobqueue.ErrStarted)
		require.NoError(t, c.Stop(context.Background()))
		<-c.Done()
		close(p.read)
		require.ErrorIs(t, <-started, jobqueue.ErrStarted, "it was stopped meanwhile")
	})
}

// TestManyParkedJobsAreRetriedAtOnce, and not one in each heartbeat.
func TestManyParkedJobsAreRetriedAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		var well atomic.Bool
		_, err := w.in.Append(w.ctx, upTo(20)...)
		require.NoError(w, err)
		w.stage(jobqueue.StageOptions{Options: jobqueue.Options{OnFailure: jobqueue.Park, MaxAttempts: 1}},
			func(_ context.Context, job jobqueue.Job[int], out *jobqueue.Output) error {
				if !well.Load() || job.Value == 3 {
					return errPoison
				}
				return w.out.Emit(out, job.Value)
			})
		w.settle(time.Minute)
		require.Len(w, w.parked(), 20)
		well.Store(true)
		key := joblog.Consumer{Queue: "in", Name: "stage"}
		for index := range int64(20) {
			require.NoError(w, joblog.Of(w.cluster).RetryParked(w.ctx, key, index+1))
		}
		w.settle(2 * w.cluster.Config().Heartbeat)
		require.Equal(w, []int64{3}, w.parked())
	})
}

// TestWhatHasEndedIsStoredAtTheEnd although a commit is under way when the consumer ends,
// for a job that failed or for Stop.
func TestWhatHasEndedIsStoredAtTheEnd(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{"a job fails": true, "stop": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				var jobs source
				p := &slowProgress{gate: make(chan struct{})}
				begun := make([]chan struct{}, 5)
				for i := range begun {
					begun[i] = make(chan struct{})
				}
				worker := jobqueue.WorkerFunc[uint64](func(_ context.Context, job jobqueue.Job[uint64]) error {
					<-begun[job.Index]
					if fails && job.Index == 4 {
						return errPoison
					}
					return nil
				})
				c, err := jobqueue.New(&jobs, p, worker, jobqueue.Options{MaxProcessing: 4, MaxAttempts: 1,
					OnFailure: jobqueue.Stop})
				require.NoError(t, err)
				require.NoError(t, c.Start(context.Background()))
				jobs.push(4)
				c.Check()
				for i := 1; i <= 4; i++ {
					synctest.Wait() // the commit of job 1 is under way
					close(begun[i])
				}
				synctest.Wait()
				stopped := make(chan error, 1)
				go func() { stopped <- c.Stop(context.Background()) }()
				synctest.Wait()
				close(p.gate)
				err, want := <-stopped, uint64(4)
				if fails {
					want = 3
					require.ErrorIs(t, err, jobqueue.ErrJobFailed)
				} else {
					require.NoError(t, err)
				}
				require.Equal(t, want, p.at())
			})
		})
	}
}

func TestNotificationsOfJobsThatWereNeverStarted(t *testing.T) {
	play(t, jobqueue.Options{}, func(s *scene) {
		s.push(1)
		s.finish(2, 3, 0)
		s.NotifyJobFailed(jobqueue.Job[uint64]{Index: 2}, errPoison)
		s.NotifyJobFailed(jobqueue.Job[uint64]{Index: 1}, nil)
		synctest.Wait()
		s.expect(0, 1)
		require.Equal(s, 1, s.Status().Processing)
		require.Empty(s, s.Status().Failing)
		s.finish(1)
		s.expect(1, 1)
		s.push(1)
		s.expect(1, 1, 2)
	})
}

// TestAJobWhoseEffectIsRefusedKeepsItsSlot while it waits and runs again.
func TestAJobWhoseEffectIsRefusedKeepsItsSlot(t *testing.T) {
	inWorld(t, func(w *world) {
		w.push(4)
		var calls atomic.Int32
		o := jobqueue.StageOptions{Options: jobqueue.Options{MaxProcessing: 2, Backoff: jobqueue.Backoff{Base: time.Minute}}}
		s := w.stage(o, func(_ context.Context, job jobqueue.Job[int], out *jobqueue.Output) error {
			out.Apply(func(context.Context, kv.Tx) error {
				if job.Index == 1 && calls.Add(1) < 3 {
					return errPoison
				}
				return nil
			})
			return nil
		})
		w.settle(time.Second)
		status := s.Status()
		require.Equal(w, 1, status.Waiting)
		require.Zero(w, status.Processing)
		require.Equal(w, 3, status.Ended)
		w.settle(10 * time.Minute)
		require.EqualValues(w, 4, s.LastProcessedIndex())
		require.NoError(w, s.Status().Trouble)
	})
}

// TestProducersWithNamesAreRemembered for longer than others.
func TestProducersWithNamesAreRemembered(t *testing.T) {
	inWorld(t, func(w *world) {
		_, _, err := w.in.AppendOnce(w.ctx, "file", 7, 1)
		require.NoError(w, err)
		w.settle(48 * time.Hour)
		require.NoError(w, w.in.Trim(w.ctx))
		last, err := w.in.LastSequence(w.ctx, "file")
		require.NoError(w, err)
		require.EqualValues(w, 7, last)
		_, _, err = w.in.AppendOnce(w.ctx, "file", 0, 1)
		require.ErrorIs(w, err, jobqueue.ErrBadOptions)
	})
}

// TestEmitsOfOneJobAreBoundedTogether in several calls.
func TestEmitsOfOneJobAreBoundedTogether(t *testing.T) {
	inWorld(t, func(w *world) {
		w.push(1)
		errs := make(chan error, 3)
		w.stage(jobqueue.StageOptions{Options: jobqueue.Options{MaxProcessing: 1}},
			func(_ context.Context, _ jobqueue.Job[int], out *jobqueue.Output) error {
				for _, n := range []int{600, 400, 1} {
					errs <- w.out.Emit(out, make([]int, n)...)
				}
				return nil
			})
		require.NoError(w, errors.Join(<-errs, <-errs))
		require.ErrorIs(w, <-errs, fdbmodel.ErrTooLarge)
	})
}

// TestAJobThatIsDroppedWhileItIsRetriedStaysDropped, and is no failure.
func TestAJobThatIsDroppedWhileItIsRetriedStaysDropped(t *testing.T) {
	inWorld(t, func(w *world) {
		w.push(1)
		sick := true
		key := joblog.Consumer{Queue: "in", Name: "stage"}
		s := w.stage(jobqueue.StageOptions{Options: jobqueue.Options{MaxProcessing: 1, MaxAttempts: 1,
			OnFailure: jobqueue.Park}}, func(context.Context, jobqueue.Job[int], *jobqueue.Output) error {
			if sick {
				return errPoison
			}
			return joblog.Of(w.cluster).DropParked(w.ctx, key, 1)
		})
		w.settle(time.Second)
		require.Equal(w, []int64{1}, w.parked())
		sick = false
		require.NoError(w, joblog.Of(w.cluster).RetryParked(w.ctx, key, 1))
		w.settle(time.Minute)
		require.Empty(w, w.parked())
		require.NoError(w, s.Err())
	})
}

// TestAParkedJobWhoseEffectFindsNothingFailsAgain: it was not dropped.
func TestAParkedJobWhoseEffectFindsNothingFailsAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.push(1)
		var runs atomic.Int64
		w.stage(jobqueue.StageOptions{Options: jobqueue.Options{MaxAttempts: 1, OnFailure: jobqueue.Park}},
			func(_ context.Context, _ jobqueue.Job[int], out *jobqueue.Output) error {
				runs.Add(1)
				out.Apply(func(context.Context, kv.Tx) error { return fdbmodel.ErrNotFound })
				return nil
			})
		w.settle(time.Second)
		key := joblog.Consumer{Queue: "in", Name: "stage"}
		require.NoError(w, joblog.Of(w.cluster).RetryParked(w.ctx, key, 1))
		w.settle(time.Minute)
		list, err := joblog.Of(w.cluster).Parked(w.ctx, key, 0, 1)
		require.NoError(w, err)
		require.EqualValues(w, 2, list[0].Attempts)
		require.False(w, list[0].Retrying)
		require.EqualValues(w, 2, runs.Load(), "it is tried once for each time that it is asked for")
	})
}

// TestARetryAsksForItsJobByItself has jobs from elsewhere be asked for their end while a parked one is tried again.
func TestARetryAsksForItsJobByItself(t *testing.T) {
	inWorld(t, func(w *world) {
		var jobs source
		var runs atomic.Int64
		s, err := jobqueue.NewStage(w.cluster, &jobs, "stage",
			func(context.Context, jobqueue.Job[uint64], *jobqueue.Output) error {
				if runs.Add(1) == 1 {
					return errPoison
				}
				return nil
			}, jobqueue.StageOptions{Queue: "chain", Options: jobqueue.Options{OnFailure: jobqueue.Park, MaxAttempts: 1}})
		require.NoError(w, err)
		require.NoError(w, s.Start())
		jobs.push(1)
		s.Check()
		w.settle(time.Minute)
		gate := make(chan struct{})
		jobs.mu.Lock()
		jobs.gate = gate
		jobs.mu.Unlock()
		w.settle(time.Minute)
		require.NoError(w, joblog.Of(w.cluster).RetryParked(w.ctx, joblog.Consumer{Queue: "chain", Name: "stage"}, 1))
		w.settle(time.Minute)
		jobs.mu.Lock()
		require.Equal(w, []uint64{1}, jobs.reads)
		jobs.gate = nil
		jobs.mu.Unlock()
		close(gate)
		w.settle(time.Minute)
		require.EqualValues(w, 2, runs.Load())
		require.NoError(w, s.Stop(w.ctx))
	})
}

// TestTroubleOfTheProgressIsOver once it is stored.
func TestTroubleOfTheProgressIsOver(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var jobs source
		p := &failingProgress{}
		p.left.Store(3)
		worker := jobqueue.WorkerFunc[uint64](func(context.Context, jobqueue.Job[uint64]) error { return nil })
		c, err := jobqueue.New(&jobs, p, worker, jobqueue.Options{MaxProcessing: 1,
			Backoff: jobqueue.Backoff{Base: time.Second}})
		require.NoError(t, err)
		require.NoError(t, c.Start(context.Background()))
		jobs.push(1)
		c.Check()
		synctest.Wait()
		require.ErrorIs(t, c.Status().Trouble, errPoison)
		elapse(time.Hour)
		synctest.Wait()
		require.EqualValues(t, 1, p.at())
		require.NoError(t, c.Status().Trouble)
		require.NoError(t, c.Stop(context.Background()))
	})
}

// failingProgress fails to store an index some times.
type failingProgress struct {
	progress
	left atomic.Int32
}

func (p *failingProgress) SetProcessedIndex(ctx context.Context, index uint64) error {
	if p.left.Add(-1) >= 0 {
		return errPoison
	}
	return p.progress.SetProcessedIndex(ctx, index)
}

// TestNoAppendBeginsAfterTheEnd appends to a log that is closed meanwhile.
func TestNoAppendBeginsAfterTheEnd(t *testing.T) {
	t.Parallel()
	cluster := openCluster(t, modeltest.OpenMemory(t))
	for round := range 200 {
		log, err := jobqueue.NewLog(cluster, "log", jobqueue.LogOptions[string]{})
		require.NoError(t, err)
		var clients sync.WaitGroup
		for range 2 {
			clients.Go(func() { _, _ = log.Append(t.Context(), "a") })
		}
		for range round {
			runtime.Gosched() // and tells nobody
		}
		log.Close()
		clients.Wait()
	}
}

// TestAStopWaitsForAParkedJobThatIsTriedAgain: it is a job that runs, and what it leaves is committed.
func TestAStopWaitsForAParkedJobThatIsTriedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.push(1)
		var runs atomic.Int64
		gate := make(chan struct{})
		s := w.stage(jobqueue.StageOptions{Options: jobqueue.Options{MaxAttempts: 1, OnFailure: jobqueue.Park}},
			func(ctx context.Context, job jobqueue.Job[int], out *jobqueue.Output) error {
				if runs.Add(1) == 1 {
					return errPoison
				}
				select {
				case <-gate:
					return w.out.Emit(out, job.Value)
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		w.settle(time.Second)
		require.NoError(w, joblog.Of(w.cluster).RetryParked(w.ctx, joblog.Consumer{Queue: "in", Name: "stage"}, 1))
		w.settle(time.Minute)
		require.EqualValues(w, 2, runs.Load())
		stopped := make(chan error, 1)
		go func() { stopped <- s.Stop(w.ctx) }()
		w.settle(time.Minute)
		require.Empty(w, stopped)
		close(gate)
		require.NoError(w, <-stopped)
		require.Empty(w, w.parked())
		w.requireOut(1)
	})
}

// TestAStopThatWaitsNoLongerEndsARetry has the context of a stop end while a parked job is tried again.
func TestAStopThatWaitsNoLongerEndsARetry(t *testing.T) {
	inWorld(t, func(w *world) {
		w.push(1)
		var runs atomic.Int64
		s := w.stage(jobqueue.StageOptions{Options: jobqueue.Options{MaxAttempts: 1, OnFailure: jobqueue.Park}},
			func(ctx context.Context, _ jobqueue.Job[int], _ *jobqueue.Output) error {
				if runs.Add(1) == 1 {
					return errPoison
				}
				<-ctx.Done()
				return ctx.Err()
			})
		w.settle(time.Second)
		key := joblog.Consumer{Queue: "in", Name: "stage"}
		require.NoError(w, joblog.Of(w.cluster).RetryParked(w.ctx, key, 1))
		w.settle(time.Minute)
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		require.ErrorIs(w, s.Stop(ctx), context.DeadlineExceeded)
		<-s.Done()
		list, err := joblog.Of(w.cluster).Parked(w.ctx, key, 0, 1)
		require.NoError(w, err)
		require.EqualValues(w, 1, list[0].Attempts, "it counts for nothing")
		require.True(w, list[0].Retrying)
	})
}
