package jobqueue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/storetest"
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
				require.NoError(w, other.Commit(w.ctx, 0, passed, nil, joblog.Effects{}))
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

// TestADeposedProcessWithoutItsStore has the store be away when a job fails, so that the
// process can't tell whether that counts.
func TestADeposedProcessWithoutItsStore(t *testing.T) {
	inWorld(t, func(w *world) {
		w.push(3)
		db := &absent{Database: w.cluster.Database()}
		cluster := openCluster(t, db)
		stopped, failed := make(chan struct{}), false
		s, err := jobqueue.NewStage(cluster, newLog[int](t, cluster, "in"), "stage",
			func(_ context.Context, job jobqueue.Job[int], _ *jobqueue.Output) error {
				if failed {
					return nil
				}
				<-stopped
				failed = true
				return jobqueue.Permanent(errPoison)
			}, jobqueue.StageOptions{Options: jobqueue.Options{OnFailure: jobqueue.Stop}})
		require.NoError(w, err)
		require.NoError(w, s.Start())
		synctest.Wait()
		require.True(w, s.AtWork())
		require.NoError(w, w.depose("stage").Commit(w.ctx, 0, 1, nil, joblog.Effects{}))
		db.away.Store(true)
		close(stopped)
		w.settle(3 * cluster.Config().DeadAfter)
		require.False(w, s.AtWork())
		require.NoError(w, s.Err())
		db.away.Store(false)
		w.settle(time.Hour)
		require.EqualValues(w, 3, s.LastProcessedIndex())
		require.NoError(w, s.Stop(w.ctx))
	})
}

// absent is a store that is unavailable while it is away.
type absent struct {
	kv.Database
	away atomic.Bool
}

// Traits implements kv.TraitsOf.
func (a *absent) Traits() kv.Traits { return kv.TraitsOf(a.Database) }

// Begin implements kv.Database.
func (a *absent) Begin(o kv.Options) kv.Tx { return &absentTx{a.Database.Begin(o), a} }

type absentTx struct {
	kv.Tx
	a *absent
}

func (t *absentTx) Get(key []byte) kv.Pending[[]byte] {
	if t.a.away.Load() {
		return kv.Ready[[]byte](nil, kv.ErrUnavailable)
	}
	return t.Tx.Get(key)
}

func (t *absentTx) Commit(ctx context.Context) (kv.Committed, error) {
	if t.a.away.Load() {
		return kv.Committed{}, kv.ErrUnavailable
	}
	return t.Tx.Commit(ctx)
}

// depose takes the lease of a stage of the log in from the process that has it.
func (w *world) depose(stage string) *joblog.Lease {
	w.Helper()
	key := joblog.Consumer{Queue: "in", Name: stage}
	_, present, err := joblog.Of(w.cluster).Take(w.ctx, key, joblog.Take{})
	require.NoError(w, err)
	lease, _, err := joblog.Of(w.cluster).Take(w.ctx, key, joblog.Take{Observed: present, About: "another process"})
	require.NoError(w, err)
	require.NotNil(w, lease)
	return lease
}

// TestAProcessThatStandsByWithoutAWatch looks at the lease as often as its holder writes it, and takes over from one
// that is dead.
func TestAProcessThatStandsByWithoutAWatch(t *testing.T) {
	inWorld(t, func(w *world) {
		key := joblog.Consumer{Queue: "in", Name: "stage"}
		holder, _, err := joblog.Of(w.cluster).Take(w.ctx, key, joblog.Take{About: "another process"})
		require.NoError(w, err)
		db := storetest.NewUnwatched(w.cluster.Database())
		cluster := openCluster(t, db)
		s, err := jobqueue.NewStage(cluster, newLog[int](w.T, cluster, "in"), "stage", w.pass, jobqueue.StageOptions{})
		require.NoError(w, err)
		require.NoError(w, s.Start())
		w.push(3)
		const beats = 10
		for range beats {
			w.settle(cluster.Config().Heartbeat)
			_, err := holder.Beat(w.ctx, joblog.Trouble{}, 1)
			require.NoError(w, err)
		}
		require.False(w, s.AtWork())
		require.LessOrEqual(w, db.Asked(), 2*beats)
		w.settle(2 * cluster.Config().DeadAfter)
		require.True(w, s.AtWork())
		require.NoError(w, s.Stop(w.ctx))
	})
}
