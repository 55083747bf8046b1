package jobqueue_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/internal/bubble"
)

// line is one process of a pipeline: it splits each number into two, counts each of
// those in a key of its own, and sums them up. Logs lie between the stages.
type line struct {
	db     *mortal
	prefix string        // of its keys
	pause  time.Duration // that its jobs take at most
	logs   [3]*jobqueue.Log[uint64]
	stages [3]*jobqueue.Stage[uint64]
}

func sumKey(prefix string) []byte { return []byte(prefix + "sum") }

func countKeys(prefix string) []byte { return []byte(prefix + "count") }

func countKey(prefix string, n uint64) []byte {
	return binary.BigEndian.AppendUint64(countKeys(prefix), n)
}

// startLine starts a process. It is nil if the process died at once.
func startLine(t *testing.T, db *mortal, advanced func(stage int, processed uint64)) *line {
	ctx := context.Background()
	cluster, err := fdbmodel.Open(ctx, db, "default", fdbmodel.Options{})
	if db.died.Load() {
		return nil
	}
	require.NoError(t, err)
	l := &line{db: db, pause: 100 * time.Millisecond}
	plain := func(_ int, handle jobqueue.Handler[uint64]) jobqueue.Handler[uint64] { return handle }
	require.NoError(t, l.start(cluster, advanced, plain))
	return l
}

// start starts the stages, with handlers that may be wrapped.
func (l *line) start(cluster *fdbmodel.Cluster, advanced func(stage int, processed uint64),
	wrap func(stage int, handle jobqueue.Handler[uint64]) jobqueue.Handler[uint64],
) (err error) {
	for i := range l.logs {
		l.logs[i], err = jobqueue.NewLog(cluster, fmt.Sprint("log-", i), jobqueue.LogOptions[uint64]{Keep: 1 << 30})
		if err != nil {
			return err
		}
	}
	for i, handle := range []jobqueue.Handler[uint64]{l.split, l.count, l.sum} {
		o := jobqueue.Options{MaxProcessing: 4, MaxSearchAhead: 32, Backoff: jobqueue.Backoff{Base: l.pause},
			OnAdvance: func(processed uint64) { advanced(i, processed) }}
		l.stages[i], err = jobqueue.NewStage(cluster, l.logs[i], "stage", wrap(i, handle),
			jobqueue.StageOptions{Options: o})
		if err == nil {
			err = l.stages[i].Start()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *line) rest() { elapse(time.Duration(rand.Int64N(int64(l.pause)))) }

func (l *line) split(_ context.Context, job jobqueue.Job[uint64], out *jobqueue.Output) error {
	l.rest()
	return l.logs[1].Emit(out, 2*job.Value, 2*job.Value+1)
}

func (l *line) count(_ context.Context, job jobqueue.Job[uint64], out *jobqueue.Output) error {
	l.rest()
	if rand.IntN(50) == 0 {
		return errors.New("now and then")
	}
	out.Apply(func(_ context.Context, tx kv.Tx) error {
		tx.Atomic(kv.Add, countKey(l.prefix, job.Value), []byte{1})
		return nil
	})
	return l.logs[2].Emit(out, job.Value)
}

func (l *line) sum(_ context.Context, job jobqueue.Job[uint64], out *jobqueue.Output) error {
	out.Apply(func(ctx context.Context, tx kv.Tx) error {
		var sum uint64
		value, err := tx.Get(sumKey(l.prefix)).Wait(ctx)
		if err != nil {
			return err
		}
		if value != nil {
			sum = binary.BigEndian.Uint64(value)
		}
		// What comes out of order sums up to something else.
		tx.Set(sumKey(l.prefix), binary.BigEndian.AppendUint64(nil, sum*31+job.Value))
		return nil
	})
	return nil
}

// kill ends a process that has died, or that is to end.
func (l *line) kill() {
	l.db.died.Store(true)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for i := range l.stages {
		_ = l.stages[i].Stop(ended)
		<-l.stages[i].Done()
		l.logs[i].Close()
	}
}

// watermarks are how far the stages have come, as their processes are told.
type watermarks struct {
	mu sync.Mutex
	at [3]uint64
}

func (w *watermarks) get() [3]uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

// TestPipelineSurvivesKills runs a pipeline of three stages in two processes, on a
// store with faults, and kills one of them at random commits, before they have committed
// or after. What is in the store at the end happened once, and in order.
func TestPipelineSurvivesKills(t *testing.T) {
	t.Parallel()
	kills := 20
	if long {
		kills = 100
	}
	bubble.Test(t, func(t *testing.T) {
		seed := uint64(time.Now().UnixNano())
		if long {
			seed = rand.Uint64()
		}
		t.Logf("seed %d", seed)
		dice := rand.New(rand.NewPCG(seed, 1))
		store := modeltest.OpenMemory(t)
		faults := faultkv.Wrap(store, faultkv.Everywhere(seed, 0.02))
		var marks watermarks
		advanced := func(stage int, processed uint64) {
			marks.mu.Lock()
			defer marks.mu.Unlock()
			marks.at[stage] = max(marks.at[stage], processed)
		}
		var lines [2]*line
		var killed atomic.Int64
		pushed := pushUntil(t, faults, func() bool { return killed.Load() >= int64(kills) })
		n := uint64(1 << 62) // until it is known
		for marks.get() != [3]uint64{n, 2 * n, 2 * n} {
			select {
			case n = <-pushed:
			default:
			}
			for i, l := range lines {
				switch {
				case l == nil:
					at := 0
					if killed.Load() < int64(kills) {
						at = 1 + dice.IntN(80)
					}
					lines[i] = startLine(t, newMortal(faults, at, dice.IntN(2) == 0), advanced)
				case l.db.died.Load():
					l.kill()
					lines[i] = nil
					killed.Add(1)
				}
			}
			elapse(100 * time.Millisecond)
		}
		t.Logf("%d jobs, %d kills", n, killed.Load())
		for _, l := range lines {
			if l != nil {
				l.kill()
			}
		}
		synctest.Wait()
		faults.Flush()
		requireOnce(t, openCluster(t, store), "", n)
	})
}

// pushUntil appends the numbers from 0 on, each once, as a process that repeats what
// failed, until it is enough. It then sends how many there are.
func pushUntil(t *testing.T, db kv.Database, enough func() bool) (pushed chan uint64) {
	log := newLog[uint64](t, openCluster(t, db), "log-0")
	pushed = make(chan uint64, 1)
	go func() {
		i := uint64(0)
		for !enough() {
			_, _, err := log.AppendOnce(context.Background(), "pusher", int64(i+1), i, i+1, i+2)
			if err == nil {
				i += 3
			}
			elapse(time.Duration(rand.IntN(2000)) * time.Millisecond)
		}
		pushed <- i
	}()
	return pushed
}

// requireOnce checks what a pipeline has left in a store.
func requireOnce(t *testing.T, cluster *fdbmodel.Cluster, prefix string, n uint64) {
	ctx := context.Background()
	w := &world{T: t, ctx: ctx, cluster: cluster}
	w.audit()
	var want uint64
	for i, count := range []uint64{n, 2 * n, 2 * n} {
		log := newLog[uint64](t, cluster, fmt.Sprint("log-", i))
		for at := uint64(0); at < count; {
			jobs, err := log.Range(ctx, at+1, 1000)
			require.NoError(t, err)
			require.NotEmpty(t, jobs, "log %d ends after %d", i, at)
			for _, job := range jobs {
				require.Equal(t, at, job, "log %d", i)
				at++
			}
		}
		head, err := log.Head(ctx)
		require.NoError(t, err)
		require.Equal(t, count, head)
	}
	for at := range 2 * n {
		want = want*31 + at
	}
	require.NoError(t, cluster.View(ctx, func(tx kv.Attempt) error {
		sum, err := tx.Get(sumKey(prefix)).Wait(ctx)
		if err == nil {
			require.Equal(t, want, binary.BigEndian.Uint64(sum))
		}
		return err
	}))
	at := uint64(0)
	require.NoError(t, cluster.EachKey(ctx, kv.Prefix(countKeys(prefix)), func(item kv.KeyValue) error {
		require.Equal(t, countKey(prefix, at), item.Key)
		require.Equal(t, []byte{1}, item.Value, "number %d", at)
		at++
		return nil
	}))
	require.Equal(t, 2*n, at)
}

// TestAStageDiesAtEveryCommit kills a process at its first commit, at its second, and
// so on, before the commit is made and after, and has another one go on.
func TestAStageDiesAtEveryCommit(t *testing.T) {
	t.Parallel()
	for _, committed := range []bool{false, true} {
		for n, died := 1, true; died; n++ {
			bubble.Test(t, func(t *testing.T) {
				store := modeltest.OpenMemory(t)
				var marks watermarks
				advanced := func(stage int, processed uint64) {
					marks.mu.Lock()
					defer marks.mu.Unlock()
					if processed <= marks.at[stage] {
						t.Errorf("stage %d went back from %d to %d", stage, marks.at[stage], processed)
					}
					marks.at[stage] = processed
				}
				log := newLog[uint64](t, openCluster(t, store), "log-0")
				_, err := log.Append(context.Background(), 0, 1, 2)
				require.NoError(t, err)
				db := newMortal(store, n, committed)
				if first := startLine(t, db, advanced); first != nil {
					for !db.died.Load() && marks.get() != [3]uint64{3, 6, 6} {
						elapse(time.Second)
					}
					died = db.died.Load()
					first.kill()
				}
				second := startLine(t, newMortal(store, 0, false), advanced)
				for marks.get() != [3]uint64{3, 6, 6} && second.stages[2].LastProcessedIndex() < 6 {
					elapse(time.Second)
				}
				second.kill()
				requireOnce(t, openCluster(t, store), "", 3)
			})
		}
	}
}
