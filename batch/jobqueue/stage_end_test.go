package jobqueue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/internal/bubble"
)

// TestAStopMeetsAnOutputThatIsRefused stops a stage whose last job is refused at its commit, while another one
// runs: it waits for that one, and both are done after the next start.
func TestAStopMeetsAnOutputThatIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		w.push(2)
		var refuse atomic.Bool
		refuse.Store(true)
		let := make(chan struct{})
		handle := func(_ context.Context, job jobqueue.Job[int], out *jobqueue.Output) error {
			if job.Value == 2 {
				<-let
			}
			out.Apply(func(context.Context, kv.Tx) error {
				if refuse.Load() {
					elapse(time.Minute)
					return errPoison
				}
				return nil
			})
			return w.out.Emit(out, job.Value)
		}
		o := jobqueue.StageOptions{Options: jobqueue.Options{MaxProcessing: 2}}
		s := w.stage(o, handle)
		stopped := make(chan error, 1)
		go func() { stopped <- s.Stop(w.ctx) }()
		w.settle(2 * time.Minute)
		require.Empty(w, stopped, "the second job runs")
		close(let)
		w.settle(2 * time.Minute)
		require.NoError(w, <-stopped)
		require.Zero(w, s.LastProcessedIndex())
		refuse.Store(false)
		w.stage(o, handle)
		w.requireOut(1, 2)
	})
}

// TestAStageOfAnEndedStoreEnds closes the store under a stage that is at work and one that stands by.
func TestAStageOfAnEndedStoreEnds(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		db := modeltest.OpenMemory(t)
		cluster := openCluster(t, db)
		log := newLog[int](t, cluster, "in")
		var stages [2]*jobqueue.Stage[int]
		for i := range stages {
			var err error
			stages[i], err = jobqueue.NewStage(cluster, log, "stage",
				func(context.Context, jobqueue.Job[int], *jobqueue.Output) error { return nil }, jobqueue.StageOptions{})
			require.NoError(t, err)
			require.NoError(t, stages[i].Start())
			<-stages[0].Ready()
		}
		synctest.Wait()
		require.False(t, stages[1].AtWork())
		require.NoError(t, db.Close())
		for _, s := range stages {
			<-s.Done()
			require.ErrorIs(t, s.Err(), kv.ErrClosed)
			require.ErrorIs(t, s.Stop(context.Background()), kv.ErrClosed)
		}
	})
}
