package grouping_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/grouping"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/workers"
)

// counted is a store that counts the commits that write, by what they are for.
type counted struct {
	kv.Database
	mu      sync.Mutex
	commits map[string]int
}

// Traits implements kv.TraitsOf.
func (c *counted) Traits() kv.Traits { return kv.TraitsOf(c.Database) }

// Begin implements kv.Database.
func (c *counted) Begin(o kv.Options) kv.Tx {
	return &countedTx{Tx: c.Database.Begin(o), c: c, tag: o.Tag}
}

// take returns what was counted since the last call.
func (c *counted) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.commits
	c.commits = map[string]int{}
	return was
}

type countedTx struct {
	kv.Tx
	c      *counted
	tag    string
	writes bool
}

func (t *countedTx) Set(key, value []byte) { t.writes = true; t.Tx.Set(key, value) }

func (t *countedTx) Clear(key []byte) { t.writes = true; t.Tx.Clear(key) }

func (t *countedTx) ClearRange(r kv.Range) { t.writes = true; t.Tx.ClearRange(r) }

func (t *countedTx) Atomic(op kv.AtomicOp, key, param []byte) {
	t.writes = true
	t.Tx.Atomic(op, key, param)
}

func (t *countedTx) SetVersionstampedKey(key []byte, offset int, value []byte) {
	t.writes = true
	t.Tx.SetVersionstampedKey(key, offset, value)
}

func (t *countedTx) SetVersionstampedValue(key, value []byte, offset int) {
	t.writes = true
	t.Tx.SetVersionstampedValue(key, value, offset)
}

func (t *countedTx) Commit(ctx context.Context) (kv.Committed, error) {
	if t.writes {
		t.c.mu.Lock()
		t.c.commits[t.tag]++
		t.c.mu.Unlock()
	}
	return t.Tx.Commit(ctx)
}

// TestCommitsOfATaskWhenIdle counts the commits of a single task from its submit to its
// result, and those of a future that runs alone: at most two more, one of them the gather.
func TestCommitsOfATaskWhenIdle(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		inner := embedded.OpenMemory(embedded.Options{})
		db := &counted{Database: inner, commits: map[string]int{}}
		client, err := futures.New(ctx, db, futures.Options{})
		require.NoError(t, err)
		w, err := workers.New(client, workers.Options{})
		require.NoError(t, err)
		plain := futures.Define[order, int]("plain")
		require.NoError(t, w.Register(plain.Bind(func(_ context.Context, o order) (int, error) { return o.N, nil })))
		h := handler(grouping.Settings{})
		require.NoError(t, w.RegisterBundle(h.Bind(func(_ context.Context, _ string, tasks []grouping.Task[order],
		) ([]grouping.Outcome[int], error) {
			return []grouping.Outcome[int]{{Out: tasks[0].In.N}}, nil
		})))
		require.NoError(t, h.Setup(ctx, client))
		ended := make(chan error)
		go func() { ended <- w.Run(ctx) }()
		<-w.Ready()
		count := func(submit func() (*futures.Typed[int], error)) (commits map[string]int, sum int) {
			synctest.Wait()
			db.take()
			f, err := submit()
			require.NoError(t, err)
			_, err = f.Await(ctx)
			require.NoError(t, err)
			synctest.Wait()
			commits = db.take()
			for _, beside := range []string{"futura-beat", "futura-idle", "futura-janitor", "futura-session"} {
				delete(commits, beside)
			}
			for n := range maps.Values(commits) {
				sum += n
			}
			return commits, sum
		}
		for range 3 {
			alone, least := count(func() (*futures.Typed[int], error) { return plain.Submit(ctx, client, order{"t", 1}) })
			grouped, most := count(func() (*futures.Typed[int], error) { return h.Submit(ctx, client, order{"t", 1}) })
			t.Logf("a future: %v, a task: %v", alone, grouped)
			require.Positive(t, least)
			require.LessOrEqual(t, most, least+2)
		}
		stop()
		<-ended
		require.NoError(t, client.Close(context.Background()))
		require.NoError(t, inner.Close())
	})
}
