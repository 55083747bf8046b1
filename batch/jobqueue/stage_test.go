package jobqueue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
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

// world is a store in memory with two logs of numbers, in virtual time.
type world struct {
	*testing.T
	ctx     context.Context
	cluster *fdbmodel.Cluster
	in, out *jobqueue.Log[int]
}

func inWorld(t *testing.T, fn func(w *world)) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := &world{T: t, ctx: context.Background()}
		w.cluster = openCluster(t, modeltest.OpenMemory(t))
		w.in, w.out = newLog[int](t, w.cluster, "in"), newLog[int](t, w.cluster, "out")
		fn(w)
		w.audit()
	})
}

func openCluster(t *testing.T, db kv.Database) *fdbmodel.Cluster {
	t.Helper()
	cluster, err := fdbmodel.Open(context.Background(), db, "default", fdbmodel.Options{})
	require.NoError(t, err)
	return cluster
}

func newLog[J any](t *testing.T, cluster *fdbmodel.Cluster, name string) *jobqueue.Log[J] {
	t.Helper()
	log, err := jobqueue.NewLog(cluster, name, jobqueue.LogOptions[J]{})
	require.NoError(t, err)
	t.Cleanup(log.Close)
	return log
}

// push appends the numbers from 1 to n.
func (w *world) push(n int) {
	w.Helper()
	for i := range n {
		index, err := w.in.Append(w.ctx, i+1)
		require.NoError(w, err)
		require.EqualValues(w, i+1, index)
	}
}

// stage starts a stage of the log in, and stops it at the end of the test.
func (w *world) stage(o jobqueue.StageOptions, handle jobqueue.Handler[int]) *jobqueue.Stage[int] {
	w.Helper()
	s, err := jobqueue.NewStage(w.cluster, w.in, "stage", handle, o)
	require.NoError(w, err)
	require.NoError(w, s.Start())
	w.Cleanup(func() {
		_ = s.Stop(w.ctx)
		<-s.Done()
	})
	synctest.Wait()
	return s
}

// settle lets virtual time pass.
func (w *world) settle(d time.Duration) {
	elapse(d)
	synctest.Wait()
}

// requireOut compares the log out.
func (w *world) requireOut(want ...int) {
	w.Helper()
	var got []int
	for {
		more, err := w.out.Range(w.ctx, uint64(len(got)+1), 1000)
		require.NoError(w, err)
		if len(more) == 0 {
			break
		}
		got = append(got, more...)
	}
	require.Equal(w, want, got)
}

func (w *world) audit() {
	w.Helper()
	modeltest.RequireSound(w, w.cluster)
}

func (w *world) parked() (indexes []int64) {
	w.Helper()
	list, err := joblog.Of(w.cluster).Parked(w.ctx, joblog.Consumer{Queue: "in", Name: "stage"}, 0, 100)
	require.NoError(w, err)
	for _, p := range list {
		indexes = append(indexes, p.Index)
	}
	return indexes
}

// upTo returns the numbers from 1 to n.
func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i+1)
	}
	return all
}

// pass emits a job to the log out, after up to a minute.
func (w *world) pass(_ context.Context, job jobqueue.Job[int], out *jobqueue.Output) error {
	elapse(time.Duration(rand.IntN(60)) * time.Second)
	return w.out.Emit(out, job.Value)
}

func TestStageKeepsTheOrderOfItsJobs(t *testing.T) {
	inWorld(t, func(w *world) {
		var told []uint64
		o := jobqueue.StageOptions{Options: jobqueue.Options{MaxProcessing: 8, MaxSearchAhead: 20,
			OnAdvance: func(processed uint64) { told = append(told, processed) }}}
		s := w.stage(o, w.pass)
		w.push(100)
		w.settle(time.Hour)
		require.Equal(w, uint64(100), s.LastProcessedIndex())
		require.Equal(w, uint64(100), told[len(told)-1])
		w.requireOut(upTo(100)...)
		_, err := w.in.AtIndex(w.ctx, 1)
		require.ErrorIs(w, err, jobqueue.ErrRemoved)
		_, err = w.in.AtIndex(w.ctx, 101)
		require.ErrorIs(w, err, jobqueue.ErrNoJob)
		require.True(w, s.AtWork())
		require.NoError(w, s.Stop(w.ctx))
		require.False(w, s.AtWork())
		require.Equal(w, uint64(100), s.LastProcessedIndex())
	})
}

// TestAStageIsWokenByItsLog appends while the stage has nothing to do.
func TestAStageIsWokenByItsLog(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.stage(jobqueue.StageOptions{Options: jobqueue.Options{Look: 1000 * time.Hour}},
			func(_ context.Context, job jobqueue.Job[int], out *jobqueue.Output) error {
				return w.out.Emit(out, job.Value)
			})
		for range 3 {
			w.settle(time.Hour)
			_, err := w.in.Append(w.ctx, 7)
			require.NoError(w, err)
			synctest.Wait()
		}
		require.Equal(w, uint64(3), s.LastProcessedIndex())
	})
}

func TestAnErrorOfApplyFailsItsJobAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		key := []byte("sum")
		var refusals atomic.Int32
		w.push(20)
		s := w.stage(jobqueue.StageOptions{Options: jobqueue.Options{MaxProcessing: 20}},
			func(_ context.Context, job jobqueue.Job[int], out *jobqueue.Output) error {
				out.Apply(func(ctx context.Context, tx kv.Tx) error {
					if job.Value == 7 && refusals.Add(1) < 3 {
						return errPoison
					}
					tx.Atomic(kv.Add, key, []byte{byte(job.Value)})
					return nil
				})
				return w.out.Emit(out, job.Value)
			})
		require.Equal(w, uint64(6), s.LastProcessedIndex())
		require.ErrorIs(w, s.Status().Failing[0].Err, errPoison)
		w.settle(time.Hour)
		require.Equal(w, uint64(20), s.LastProcessedIndex())
		w.requireOut(upTo(20)...)
		require.NoError(w, w.cluster.View(w.ctx, func(tx kv.Attempt) error {
			sum, err := tx.Get(key).Wait(w.ctx)
			require.Equal(w, []byte{20 * 21 / 2}, sum)
			return err
		}))
	})
}

// TestManyLargeOutputsAreCommittedInParts has each job leave as much as it may.
func TestManyLargeOutputsAreCommittedInParts(t *testing.T) {
	inWorld(t, func(w *world) {
		w.push(12)
		large := newLog[[]byte](w.T, w.cluster, "large")
		s := w.stage(jobqueue.StageOptions{Options: jobqueue.Options{MaxProcessing: 12, OnFailure: jobqueue.Park}},
			func(_ context.Context, job jobqueue.Job[int], out *jobqueue.Output) error {
				switch job.Value {
				case 5:
					return large.Emit(out, make([]byte, 17<<10))
				case 6:
					out.Apply(func(_ context.Context, tx kv.Tx) error {
						tx.Set([]byte("key"), make([]byte, kv.MaxValueSize+1))
						return nil
					})
				case 7:
					return large.Emit(out, make([][]byte, joblog.MaxAppend+1)...)
				}
				for range 60 {
					if err := large.Emit(out, make([]byte, 16<<10)); err != nil {
						return err
					}
				}
				return nil
			})
		w.settle(time.Hour)
		require.Equal(w, uint64(12), s.LastProcessedIndex())
		require.Equal(w, []int64{5, 6, 7}, w.parked())
		head, err := large.Head(w.ctx)
		require.NoError(w, err)
		require.EqualValues(w, 9*60, head)
	})
}

func TestParkedJobsAreRetriedOrDropped(t *testing.T) {
	inWorld(t, func(w *world) {
		var well atomic.Bool
		_, err := w.in.Append(w.ctx, upTo(5)...)
		require.NoError(w, err)
		var said bytes.Buffer
		s := w.stage(jobqueue.StageOptions{Options: jobqueue.Options{OnFailure: jobqueue.Park, MaxAttempts: 2,
			Logger: slog.New(slog.NewTextHandler(&said, nil))}},
			func(_ context.Context, job jobqueue.Job[int], out *jobqueue.Output) error {
				if job.Value%2 == 0 && !well.Load() {
					return errPoison
				}
				return w.out.Emit(out, job.Value)
			})
		w.settle(time.Hour)
		require.Equal(w, uint64(5), s.LastProcessedIndex())
		require.Equal(w, []int64{2, 4}, w.parked())
		w.requireOut(1, 3, 5)
		key := joblog.Consumer{Queue: "in", Name: "stage"}
		require.NoError(w, joblog.Of(w.cluster).RetryParked(w.ctx, key, 2))
		w.settle(time.Minute)
		list, err := joblog.Of(w.cluster).Parked(w.ctx, key, 0, 1)
		require.NoError(w, err)
		require.EqualValues(w, 3, list[0].Attempts)
		require.False(w, list[0].Retrying)
		require.Contains(w, said.String(), `msg="a job failed" consumer=in/stage index=2 attempt=1`)
		require.Contains(w, said.String(), `msg="a parked job failed again" consumer=in/stage index=2`)
		well.Store(true)
		require.NoError(w, joblog.Of(w.cluster).RetryParked(w.ctx, key, 2))
		require.NoError(w, joblog.Of(w.cluster).DropParked(w.ctx, key, 4))
		w.settle(time.Minute)
		require.Empty(w, w.parked())
		w.requireOut(1, 3, 5, 2)
	})
}

// TestAJobThatCannotBeDecodedIsParked appends what is no number.
func TestAJobThatCannotBeDecodedIsParked(t *testing.T) {
	inWorld(t, func(w *world) {
		raw := newLog[string](w.T, w.cluster, "in")
		_, err := raw.Append(w.ctx, "1", "one", "2")
		require.NoError(w, err)
		_, err = w.in.AtIndex(w.ctx, 2)
		require.ErrorContains(w, err, "job 2 of log in")
		first, err := w.in.Range(w.ctx, 1, 10)
		require.NoError(w, err)
		require.Equal(w, []int{1}, first)
		w.stage(jobqueue.StageOptions{Options: jobqueue.Options{OnFailure: jobqueue.Park}}, w.pass)
		w.settle(time.Hour)
		require.Equal(w, []int64{2}, w.parked())
		w.requireOut(1, 2)
	})
}

func TestAStageStopsForAJobThatFails(t *testing.T) {
	inWorld(t, func(w *world) {
		w.push(3)
		s := w.stage(jobqueue.StageOptions{Options: jobqueue.Options{OnFailure: jobqueue.Stop, MaxAttempts: 2}},
			func(_ context.Context, job jobqueue.Job[int], _ *jobqueue.Output) error {
				if job.Value == 2 {
					return errPoison
				}
				return nil
			})
		<-s.Done()
		require.ErrorIs(w, s.Err(), jobqueue.ErrJobFailed)
		require.ErrorIs(w, s.Stop(w.ctx), errPoison)
		require.Equal(w, uint64(1), s.LastProcessedIndex())
		next := w.stage(jobqueue.StageOptions{}, w.pass)
		w.settle(time.Hour)
		require.Equal(w, uint64(3), next.LastProcessedIndex())
		w.requireOut(2, 3)
	})
}

// TestASecondProcessTakesOver has it do so at once from one that stops, and after the
// dead-after time from one that is silent.
func TestASecondProcessTakesOver(t *testing.T) {
	inWorld(t, func(w *world) {
		w.push(2)
		first := w.stage(jobqueue.StageOptions{}, w.pass)
		second := w.stage(jobqueue.StageOptions{}, w.pass)
		w.settle(10 * time.Minute)
		require.True(w, first.AtWork())
		require.False(w, second.AtWork())
		require.NoError(w, first.Stop(w.ctx))
		synctest.Wait()
		require.True(w, second.AtWork())
		w.requireOut(1, 2)

		// A third one steals the lease and is never heard of again.
		q, err := joblog.Of(w.cluster).Get(w.ctx, "in")
		require.NoError(w, err)
		require.Contains(w, q.Consumers[0].Lease.About, "process")
		key := joblog.Consumer{Queue: "in", Name: "stage"}
		_, present, err := joblog.Of(w.cluster).Take(w.ctx, key, joblog.Take{})
		require.NoError(w, err)
		stolen, _, err := joblog.Of(w.cluster).Take(w.ctx, key, joblog.Take{Observed: present, About: "thief"})
		require.NoError(w, err)
		require.NotNil(w, stolen)
		_, err = w.in.Append(w.ctx, 3)
		require.NoError(w, err)
		w.settle(10 * time.Minute) // pass takes up to a minute, before the lease is lost and after
		require.True(w, second.AtWork())
		w.requireOut(1, 2, 3)
		require.ErrorIs(w, stolen.Commit(w.ctx, 2, 3, nil, joblog.Effects{}), jobqueue.ErrLeaseLost)

		third := w.stage(jobqueue.StageOptions{}, w.pass)
		w.settle(time.Minute)
		require.False(w, third.AtWork())
		require.NoError(w, third.Stop(w.ctx), "one that stands by")
		require.NoError(w, third.Err())
		require.True(w, second.AtWork())
	})
}

func TestAStageTakesJobsFromElsewhere(t *testing.T) {
	inWorld(t, func(w *world) {
		var jobs source
		s, err := jobqueue.NewStage(w.cluster, &jobs, "stage",
			func(_ context.Context, job jobqueue.Job[uint64], out *jobqueue.Output) error {
				if job.Index == 103 && job.Attempt < 4 {
					return errPoison
				}
				return w.out.Emit(out, int(job.Value))
			}, jobqueue.StageOptions{Queue: "chain", Options: jobqueue.Options{Initial: 100, OnFailure: jobqueue.Park,
				MaxAttempts: 2, MaxProcessing: 3}})
		require.NoError(w, err)
		require.NoError(w, s.Start())
		jobs.push(105)
		s.Check()
		w.settle(time.Hour)
		require.Equal(w, uint64(105), s.LastProcessedIndex())
		w.requireOut(101, 102, 104, 105)
		require.NoError(w, joblog.Of(w.cluster).RetryParked(w.ctx, joblog.Consumer{Queue: "chain", Name: "stage"}, 103))
		w.settle(time.Minute)
		require.NoError(w, joblog.Of(w.cluster).RetryParked(w.ctx, joblog.Consumer{Queue: "chain", Name: "stage"}, 103))
		w.settle(time.Minute)
		w.requireOut(101, 102, 104, 105, 103)
		require.NoError(w, s.Stop(w.ctx))
	})
}

// TestABlockedJobIsSeenByAll reads what a stage is stuck at from the store.
func TestABlockedJobIsSeenByAll(t *testing.T) {
	inWorld(t, func(w *world) {
		w.push(1)
		w.stage(jobqueue.StageOptions{},
			func(context.Context, jobqueue.Job[int], *jobqueue.Output) error { return errPoison })
		w.settle(time.Minute)
		q, err := joblog.Of(w.cluster).Get(w.ctx, "in")
		require.NoError(w, err)
		lease := q.Consumers[0].Lease
		require.EqualValues(w, 1, lease.Failing)
		require.GreaterOrEqual(w, lease.Attempts, int64(4))
		require.Equal(w, errPoison.Error(), lease.Error)
	})
}

func TestStagesThatCannotBe(t *testing.T) {
	inWorld(t, func(w *world) {
		other := openCluster(w.T, modeltest.OpenMemory(w.T))
		_, err := jobqueue.NewStage(other, w.in, "stage", w.pass, jobqueue.StageOptions{})
		require.ErrorIs(w, err, jobqueue.ErrBadOptions)
		_, err = jobqueue.NewStage(w.cluster, w.in, "stage", w.pass, jobqueue.StageOptions{Queue: "other"})
		require.ErrorIs(w, err, jobqueue.ErrBadOptions)
		_, err = jobqueue.NewStage(w.cluster, w.in, "no name", w.pass, jobqueue.StageOptions{})
		require.Error(w, err)
		_, err = jobqueue.NewStage(w.cluster, w.in, "stage", w.pass,
			jobqueue.StageOptions{Options: jobqueue.Options{MaxProcessing: -1}})
		require.ErrorIs(w, err, jobqueue.ErrBadOptions)
		foreign := newLog[int](w.T, other, "out")
		w.push(1)
		s := w.stage(jobqueue.StageOptions{Options: jobqueue.Options{OnFailure: jobqueue.Stop, MaxAttempts: 1}},
			func(_ context.Context, job jobqueue.Job[int], out *jobqueue.Output) error {
				return foreign.Emit(out, job.Value)
			})
		<-s.Done()
		require.ErrorIs(w, s.Err(), jobqueue.ErrBadOptions)
		require.ErrorIs(w, s.Start(), jobqueue.ErrStarted)
	})
}

func TestAppendsOfOneProcessShareTransactions(t *testing.T) {
	inWorld(t, func(w *world) {
		const n = 2000
		seen := make([]atomic.Bool, n+1)
		done := make(chan error, n)
		for i := range n {
			go func() {
				index, err := w.out.Append(w.ctx, i)
				if err == nil && seen[index].Swap(true) {
					err = fmt.Errorf("index %d twice", index)
				}
				done <- err
			}()
		}
		for range n {
			require.NoError(w, <-done)
		}
		jobs, err := w.out.Range(w.ctx, 1, n)
		require.NoError(w, err)
		require.NotEmpty(w, jobs)
		head, err := w.out.Head(w.ctx)
		require.NoError(w, err)
		require.EqualValues(w, n, head)

		_, err = w.out.Append(w.ctx, make([]int, joblog.MaxAppend+1)...)
		require.ErrorIs(w, err, fdbmodel.ErrTooLarge)
		none, err := w.out.Append(w.ctx)
		require.NoError(w, err)
		require.Zero(w, none)
		last, err := w.out.LastSequence(w.ctx, "file")
		require.NoError(w, err)
		require.Zero(w, last)
		first, appended, err := w.out.AppendOnce(w.ctx, "file", 10, 1, 2)
		require.NoError(w, err)
		require.True(w, appended)
		last, err = w.out.LastSequence(w.ctx, "file")
		require.NoError(w, err)
		require.EqualValues(w, 10, last)
		again, appended, err := w.out.AppendOnce(w.ctx, "file", 10, 1, 2)
		require.NoError(w, err)
		require.False(w, appended)
		require.Equal(w, first, again)
		_, _, err = w.out.AppendOnce(w.ctx, "file", 0, 1)
		require.ErrorIs(w, err, jobqueue.ErrBadOptions)
		w.out.Close()
		_, err = w.out.Append(w.ctx, 1)
		require.ErrorIs(w, err, kv.ErrClosed)
		ended, cancel := context.WithCancel(w.ctx)
		cancel()
		require.True(w, errors.Is(w.out.Watch(ended, func() {}), context.Canceled))
	})
}
