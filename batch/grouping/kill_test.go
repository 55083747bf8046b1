package grouping_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/grouping"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/workers"
)

// mortal is a store as one process sees it, which dies at a commit: before that has
// committed, or after.
type mortal struct {
	kv.Database
	left      atomic.Int64 // commits until it dies
	committed bool
	die       func()
	died      atomic.Bool
}

// Traits implements kv.TraitsOf.
func (m *mortal) Traits() kv.Traits { return kv.TraitsOf(m.Database) }

// Begin implements kv.Database.
func (m *mortal) Begin(o kv.Options) kv.Tx { return mortalTx{m.Database.Begin(o), m} }

type mortalTx struct {
	kv.Tx
	m *mortal
}

func (t mortalTx) Commit(ctx context.Context) (kv.Committed, error) {
	if t.m.died.Load() {
		return kv.Committed{}, kv.ErrClosed
	}
	if t.m.left.Add(-1) != 0 {
		return t.Tx.Commit(ctx)
	}
	t.m.died.Store(true)
	t.m.die()
	if t.m.committed {
		_, _ = t.Tx.Commit(context.WithoutCancel(ctx))
	}
	return kv.Committed{}, kv.ErrClosed
}

// process is a worker on a store of its own that kills it.
type process struct {
	db     *mortal
	client *futures.Client
	stop   context.CancelFunc
	ended  chan struct{}
}

func startProcess(t *testing.T, store kv.Database, commits int, committed bool, name string,
	fn workers.BundleFunction) *process {
	ctx, stop := context.WithCancel(context.Background())
	var in seam.Worker
	p := &process{db: &mortal{Database: store, committed: committed}, stop: stop, ended: make(chan struct{})}
	p.db.die = func() { in.Vanish() }
	client, err := futures.New(ctx, p.db, futures.Options{Existing: true})
	require.NoError(t, err)
	p.client = client
	w, err := workers.New(client, workers.Options{Slots: 4, Seam: &in})
	require.NoError(t, err)
	require.NoError(t, w.RegisterBundle(name, fn))
	p.db.left.Store(int64(commits))
	go func() {
		defer close(p.ended)
		_ = w.Run(ctx)
	}()
	return p
}

// end ends a process that has died, or has nothing left to do.
func (p *process) end() {
	p.stop()
	<-p.ended
	_ = p.client.Close(context.Background())
}

// calls are what processes were asked for, and what was wrong with it.
type calls struct {
	most int

	mu    sync.Mutex
	runs  map[int]int
	wrong []string
}

func (c *calls) call(ctx context.Context, target string, tasks []grouping.Task[order],
) ([]grouping.Outcome[int], error) {
	c.mu.Lock()
	if len(tasks) == 0 || len(tasks) > c.most {
		c.wrong = append(c.wrong, fmt.Sprintf("a call of %d tasks", len(tasks)))
	}
	outcomes := make([]grouping.Outcome[int], len(tasks))
	for i, task := range tasks {
		if task.In.Target != target {
			c.wrong = append(c.wrong, fmt.Sprintf("task %d of %s in a call of %s", task.In.N, task.In.Target, target))
		}
		c.runs[task.In.N]++
		outcomes[i].Out = 2 * task.In.N
	}
	c.mu.Unlock()
	return outcomes, clock.Sleep(ctx, clock.Real{}, time.Duration(rand.IntN(500))*time.Millisecond)
}

// TestTasksSurviveKills runs tasks of several targets in processes that die at random
// commits, before these are made or after, on a store with faults. Each task ends once:
// with its result, or as one that too many workers died with. No call is of two targets or
// of too many tasks, and nothing is left behind.
func TestTasksSurviveKills(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		const targets, most, processes, kills = 5, 7, 3, 40
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		dice := rand.New(rand.NewPCG(seed, 1))
		ctx := t.Context()
		store := embedded.OpenMemory(embedded.Options{})
		faults := faultkv.Wrap(store, faultkv.Everywhere(seed, 0.01))
		client, err := futures.New(ctx, store, futures.Options{
			Config: futures.Config{Heartbeat: time.Second}})
		require.NoError(t, err)
		c := &calls{most: most, runs: map[int]int{}}
		h := handler(grouping.Settings{Most: most, Width: 2})
		require.NoError(t, h.Setup(ctx, client))
		name, fn := h.Bind(c.call)

		var submitted []*futures.Typed[int]
		all := make([]*process, processes)
		killed, over := 0, 0
		for over < len(submitted) || killed < kills {
			if n := len(submitted); killed < kills {
				var in []order
				for i := range 10 {
					in = append(in, order{fmt.Sprint("t", (n+i)%targets), n + i})
				}
				got, err := h.SubmitAll(ctx, client, in)
				require.NoError(t, err)
				submitted = append(submitted, got...)
			}
			for i, p := range all {
				switch {
				case p == nil:
					commits := 0
					if killed < kills {
						commits = 1 + dice.IntN(60)
					}
					all[i] = startProcess(t, faults, commits, dice.IntN(2) == 0, name, fn)
				case p.db.died.Load():
					p.end()
					all[i] = nil
					killed++
				}
			}
			require.NoError(t, clock.Sleep(ctx, clock.Real{}, 200*time.Millisecond))
			for over < len(submitted) {
				v, err := client.Get(ctx, submitted[over].ID())
				require.NoError(t, err)
				if !v.State.Terminal() {
					break
				}
				over++
			}
		}
		lost, again := 0, 0
		for n, f := range submitted {
			out, err := f.Await(ctx)
			var failed *futures.FailedError
			if errors.As(err, &failed) {
				require.Equal(t, layout.KindLost, failed.Kind)
				lost++
				continue
			}
			require.NoError(t, err)
			require.Equal(t, 2*n, out)
			require.GreaterOrEqual(t, c.runs[n], 1)
			again += c.runs[n] - 1
		}
		for _, p := range all {
			if p != nil {
				p.end()
			}
		}
		t.Logf("%d tasks, %d kills, %d runs more than tasks, %d tasks lost", len(submitted), killed, again, lost)
		require.Empty(t, c.wrong)
		require.Less(t, lost, len(submitted)/20)
		faults.Flush()
		report, err := audit.Check(ctx, client.Cluster(), audit.Options{})
		require.NoError(t, err)
		require.Empty(t, report.Problems)
		require.NoError(t, errors.Join(client.Close(context.Background()), store.Close()))
	})
}
