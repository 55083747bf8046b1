package jobqueue_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/fdbmodel"
)

// TestADeposedProcessStandsByAgain has a process that was stopped for longer than the
// dead-after time go on before it hears that another one took over. What it sees then, jobs
// that the other one had removed and a job that fails, doesn't end its stage.
func TestADeposedProcessStandsByAgain(t *testing.T) {
	const jobs, passed = 70, 60
	for name, failure := range map[string]error{"removed jobs": nil, "a job that fails": jobqueue.Permanent(errPoison)} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.push(jobs)
				stopped := make(chan struct{})
				o := jobqueue.StageOptions{Options: jobqueue.Options{MaxProcessing: 2, OnFailure: jobqueue.Stop}}
				s := w.stage(o, func(ctx context.Context, job jobqueue.Job[int], out *jobqueue.Output) error {
					switch job.Value {
					case 1: // nothing is committed meanwhile, which would tell it
						<-ctx.Done()
						return ctx.Err()
					case 5:
						<-stopped
						return failure
					}
					return w.out.Emit(out, job.Value)
				})
				require.True(w, s.AtWork())
				other := w.depose("stage")
				require.NoError(w, other.Commit(w.ctx, 0, passed, nil, fdbmodel.JobEffects{}))
				require.NoError(w, w.in.Trim(w.ctx))
				close(stopped)
				synctest.Wait()
				require.False(w, s.AtWork())
				require.NoError(w, s.Err())
				w.settle(w.cluster.Config().DeadAfter) // the other one is silent
				require.True(w, s.AtWork())
				require.EqualValues(w, jobs, s.LastProcessedIndex())
				w.requireOut(upTo(jobs)[passed:]...)
			})
		})
	}
}

// depose takes the lease of a stage of the log in from the process that has it.
func (w *world) depose(stage string) *fdbmodel.JobLease {
	w.Helper()
	key := fdbmodel.JobConsumer{Queue: "in", Name: stage}
	_, present, err := w.cluster.TakeJobs(w.ctx, key, fdbmodel.JobTake{})
	require.NoError(w, err)
	lease, _, err := w.cluster.TakeJobs(w.ctx, key, fdbmodel.JobTake{Observed: present, About: "another process"})
	require.NoError(w, err)
	require.NotNil(w, lease)
	return lease
}
