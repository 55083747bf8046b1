package jobqueue_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/quota"
)

// submitting has each job submit futures, as a program does with SubmitTx of a client,
// and names them so that they can be found.
func (w *world) submitting(n int) jobqueue.Handler[int] {
	return func(_ context.Context, job jobqueue.Job[int], out *jobqueue.Output) error {
		out.Apply(func(ctx context.Context, tx kv.Tx) error {
			if _, err := quota.Of(w.cluster).AdmitUntil(ctx, n); err != nil {
				return err
			}
			subs := make([]fdbmodel.Submission, n)
			for i := range subs {
				subs[i] = fdbmodel.Submission{ID: layout.BatchItemID(jobBatch, job.Value*n+i),
					Spec: layout.Spec{Function: "go:f"}}
			}
			_, err := w.cluster.SubmitTx(ctx, tx, subs)
			return err
		})
		return nil
	}
}

// jobBatch gives the futures of jobs their ids.
const jobBatch = "cb24c8cd-9c67-4bfc-8c87-2ce2ef4d8f10"

// TestAStageWaitsForRoomWithinLimits has many jobs submit futures when few may be
// pending: there are never more, no attempt fails, and all of them are made in the end.
func TestAStageWaitsForRoomWithinLimits(t *testing.T) {
	inWorld(t, func(w *world) {
		const jobs, most = 20, 3
		_, err := quota.Of(w.cluster).Set(w.ctx, func(l *quota.Limits) { l.Pending = most })
		require.NoError(w, err)
		w.push(jobs)
		s := w.stage(jobqueue.StageOptions{Options: jobqueue.Options{MaxProcessing: jobs, OnFailure: jobqueue.Stop,
			MaxAttempts: 1}}, w.submitting(1))
		ended, waited := 0, false
		for range 200 {
			w.settle(time.Second)
			_, used, err := quota.Of(w.cluster).Get(w.ctx)
			require.NoError(w, err)
			require.LessOrEqual(w, used.Pending, int64(most))
			waited = waited || s.Status().Trouble != nil
			for ended < int(s.LastProcessedIndex()) {
				ended++
				_, _, err := w.cluster.Cancel(w.ctx, layout.BatchItemID(jobBatch, ended), "")
				require.NoError(w, err)
			}
			if ended == jobs {
				break
			}
		}
		if ended < jobs { // a stage that waits for ever does not stop by itself
			over, cancel := context.WithCancel(w.ctx)
			cancel()
			_ = s.Stop(over)
		}
		require.Equal(w, jobs, ended)
		require.True(w, waited)
		require.NoError(w, s.Err())
	})
}

// TestAStageParksWhatNeverFitsWithinLimits has a job submit more futures than may ever be
// pending.
func TestAStageParksWhatNeverFitsWithinLimits(t *testing.T) {
	inWorld(t, func(w *world) {
		_, err := quota.Of(w.cluster).Set(w.ctx, func(l *quota.Limits) { l.Pending = 3 })
		require.NoError(w, err)
		w.push(1)
		s := w.stage(jobqueue.StageOptions{Options: jobqueue.Options{OnFailure: jobqueue.Park, MaxAttempts: 2}},
			w.submitting(4))
		w.settle(time.Minute)
		require.EqualValues(w, 1, s.LastProcessedIndex())
		require.Equal(w, []int64{1}, w.parked())
	})
}

// TestAParkedJobThatIsTriedAgainWaitsForRoom within the limits of the cluster: that is no attempt that failed.
func TestAParkedJobThatIsTriedAgainWaitsForRoom(t *testing.T) {
	inWorld(t, func(w *world) {
		_, err := quota.Of(w.cluster).Set(w.ctx, func(l *quota.Limits) { l.Pending = 1 })
		require.NoError(w, err)
		w.push(1)
		runs := 0
		submit := w.submitting(1)
		w.stage(jobqueue.StageOptions{Options: jobqueue.Options{OnFailure: jobqueue.Park, MaxAttempts: 1}},
			func(ctx context.Context, job jobqueue.Job[int], out *jobqueue.Output) error {
				if runs++; runs == 1 {
					return errPoison
				}
				return submit(ctx, job, out)
			})
		w.settle(time.Second)
		require.Equal(w, []int64{1}, w.parked())
		first, err := w.cluster.Submit(w.ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f"}}})
		require.NoError(w, err)
		key := joblog.Consumer{Queue: "in", Name: "stage"}
		require.NoError(w, joblog.Of(w.cluster).RetryParked(w.ctx, key, 1))
		w.settle(time.Minute)
		list, err := joblog.Of(w.cluster).Parked(w.ctx, key, 0, 1)
		require.NoError(w, err)
		require.EqualValues(w, 1, list[0].Attempts)
		require.Equal(w, 2, runs)
		_, _, err = w.cluster.Cancel(w.ctx, first[0].ID, "")
		require.NoError(w, err)
		w.settle(time.Minute)
		require.Empty(w, w.parked())
		require.Equal(w, 2, runs)
	})
}
