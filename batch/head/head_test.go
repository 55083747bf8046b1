package head_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/batch/memstore"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/audit"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/internal/storetest"
	"github.com/futura-run/futura/workers"
)

// bed is a cluster with a head.
type bed struct {
	*testing.T
	cluster *fdbmodel.Cluster
	store   batch.Store
	head    *head.Head
	options head.Options

	mu   sync.Mutex
	runs map[string][]string // by arguments: who ran them
}

// patient is a dead-after time that no worker misses on a busy machine.
const patient = time.Minute

// eachStore runs a test on the stores that need nothing, with workers that don't die.
func eachStore(t *testing.T, test func(*bed)) {
	eachStoreWith(t, patient, test)
}

func eachStoreWith(t *testing.T, deadAfter time.Duration, test func(*bed)) {
	for _, name := range []string{"futures", "memory"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t)
			cluster, err := fdbmodel.Open(context.Background(), db, "batches", fdbmodel.Options{
				Config: layout.Config{Heartbeat: 100 * time.Millisecond, DeadAfter: deadAfter},
			})
			require.NoError(t, err)
			b := &bed{T: t, cluster: cluster, runs: map[string][]string{}}
			b.store = memstore.New()
			if name == "futures" {
				b.store = futurestore.New(cluster, futurestore.Options{Backoff: layout.Backoff{Base: 10 * time.Millisecond}})
			}
			t.Cleanup(func() { require.NoError(t, b.store.Close(context.Background())) })
			b.options = head.Options{
				Store: b.store, Dispatcher: head.NewCluster(cluster), BootDelay: time.Millisecond,
				WorkerWait: 50 * time.Millisecond, Look: 20 * time.Millisecond, Backoff: 10 * time.Millisecond,
				MoveAfter: -1,
			}
			test(b)
			report, err := audit.Check(context.Background(), cluster, audit.Options{})
			require.NoError(t, err)
			require.Empty(t, report.Problems)
		})
	}
}

// start runs a head, until stop or the test's end.
func (b *bed) start() (stop func()) {
	h := head.New(b.options)
	b.head = h
	return storetest.Background(b, h.Run)
}

// work runs a worker that runs go:run: its first argument says how it ends.
func (b *bed) work(o workers.Options) *workers.Worker {
	w, err := workers.FromCluster(b.cluster, o)
	require.NoError(b, err)
	require.NoError(b, w.Register("run", func(ctx context.Context, args []byte) ([]byte, error) {
		var arguments []string
		if err := json.Unmarshal(args, &arguments); err != nil {
			return nil, err
		}
		key := strings.Join(arguments, " ")
		info, _ := workers.InfoFrom(ctx)
		b.mu.Lock()
		b.runs[key] = append(b.runs[key], string(info.Worker))
		times := len(b.runs[key])
		b.mu.Unlock()
		switch arguments[0] {
		case "fail":
			return nil, errors.New("no luck")
		case "second":
			if times == 1 {
				return nil, errors.New("not yet")
			}
		case "block":
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return []byte("ran " + key), nil
	}))
	storetest.Background(b, w.Run)
	<-w.Ready()
	return w
}

func template(nodes int) batch.Template {
	return batch.Template{FunctionID: "go:run", Method: "run", Config: batch.Config{Nodes: nodes, Concurrency: 8}}
}

func numbered(prefix string, n int) [][]string {
	arguments := make([][]string, n)
	for i := range arguments {
		arguments[i] = []string{prefix, fmt.Sprint(i)}
	}
	return arguments
}

func (b *bed) submit(r batch.Request) batch.Batch {
	made, _, err := b.head.Submit(b.Context(), r)
	require.NoError(b, err)
	return made
}

func (b *bed) await(id string, done func(batch.Batch) bool) batch.Batch {
	var got batch.Batch
	require.Eventually(b, func() bool {
		var err error
		got, err = b.store.Get(context.Background(), id)
		require.NoError(b, err)
		return done(got)
	}, time.Minute, 2*time.Millisecond)
	return got
}

func over(b batch.Batch) bool { return b.Status.Over() }

func (b *bed) items(id string) []batch.Item {
	items, err := b.store.Items(context.Background(), id, 0, batch.MaxItems)
	require.NoError(b, err)
	return items
}

func (b *bed) ran(key string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.runs[key]
}

func TestABatchRunsOnTheWorkersThatItAsksFor(t *testing.T) {
	t.Parallel()
	eachStore(t, func(b *bed) {
		for range 4 {
			b.work(workers.Options{Slots: 4})
		}
		b.start()
		made := b.submit(batch.Request{Template: template(3), Arguments: numbered("go", 100), MaxAttempts: 2})
		require.Equal(b, 2, made.MaxAttempts)
		got := b.await(made.ID, over)
		require.Equal(b, batch.Done, got.Status)
		chunks, err := b.store.Chunks(b.Context(), made.ID)
		require.NoError(b, err)
		require.Len(b, chunks, 3)
		for _, c := range chunks {
			require.Regexp(b, "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$", c.ID)
		}
		by := map[string]int{}
		for _, item := range b.items(made.ID) {
			require.Equal(b, batch.Done, item.Status)
			require.Equal(b, fmt.Sprint("ran go ", item.Index), item.Result.Stdout)
			require.Len(b, b.ran(fmt.Sprint("go ", item.Index)), 1)
			by[item.Worker]++
		}
		require.Len(b, by, 3)
		for _, n := range by {
			require.GreaterOrEqual(b, n, 33, "dealt round robin")
		}
	})
}

func TestFailedItemsAreTriedElsewhere(t *testing.T) {
	t.Parallel()
	eachStore(t, func(b *bed) {
		b.work(workers.Options{Slots: 4})
		b.work(workers.Options{Slots: 4})
		b.start()
		arguments := append(numbered("second", 10), numbered("fail", 5)...)
		made := b.submit(batch.Request{Template: template(-1), Arguments: arguments, MaxAttempts: 3})
		require.Equal(b, batch.Done, b.await(made.ID, over).Status)
		for i, item := range b.items(made.ID) {
			runs := b.ran(strings.Join(item.Arguments, " "))
			if i < 10 {
				require.Equal(b, batch.Done, item.Status)
				require.Equal(b, 1, item.Attempts)
				require.NotEqual(b, runs[0], runs[1], "a retry prefers another worker")
				continue
			}
			require.Equal(b, batch.PermanentlyFailed, item.Status)
			require.Equal(b, 3, item.Attempts)
			require.Len(b, runs, 3)
			require.Equal(b, "error: no luck", item.Reason)
			result := *item.Result
			result.Usage = batch.Usage{} // as long as it took
			require.Equal(b, batch.Result{Stderr: "no luck", ExitCode: batch.NoExitCode}, result, "in every store")
		}
		progress, err := b.store.Progress(b.Context(), made.ID)
		require.NoError(b, err)
		require.Equal(b, 10, progress[batch.Done])
		require.Equal(b, 5, progress[batch.PermanentlyFailed])
		n, err := b.head.Retry(b.Context(), made.ID)
		require.NoError(b, err)
		require.Equal(b, 5, n)
		b.await(made.ID, over)
		require.Len(b, b.ran("fail 0"), 6)
	})
}

// TestARetryPrefersAnotherWorker retries items of a batch that asks for one
// worker, where there are two.
func TestARetryPrefersAnotherWorker(t *testing.T) {
	t.Parallel()
	eachStore(t, func(b *bed) {
		b.work(workers.Options{Slots: 4})
		b.work(workers.Options{Slots: 4})
		b.start()
		made := b.submit(batch.Request{Template: template(1), Arguments: numbered("second", 1), MaxAttempts: 2})
		require.Equal(b, batch.Done, b.await(made.ID, over).Status)
		runs := b.ran("second 0")
		require.Len(b, runs, 2)
		require.NotEqual(b, runs[0], runs[1])
		require.Equal(b, runs[1], b.items(made.ID)[0].Worker)
	})
}

func TestABatchWaitsForWorkers(t *testing.T) {
	t.Parallel()
	eachStore(t, func(b *bed) {
		b.options.WorkerWait = time.Hour
		b.start()
		made := b.submit(batch.Request{Template: template(2), Arguments: numbered("go", 5)})
		got := b.await(made.ID, func(x batch.Batch) bool { return x.Reason != "" })
		require.Equal(b, batch.Created, got.Status)
		require.Contains(b, got.Reason, "0 of 2 workers")
		b.work(workers.Options{Slots: 2})
		got = b.await(made.ID, func(x batch.Batch) bool { return strings.Contains(x.Reason, "1 of 2") })
		require.Equal(b, batch.Created, got.Status)
		b.work(workers.Options{Slots: 2})
		got = b.await(made.ID, over)
		require.Equal(b, batch.Done, got.Status)
		require.Empty(b, got.Reason)
	})
}

func TestABatchStartsWithThoseThereAfterATime(t *testing.T) {
	t.Parallel()
	eachStore(t, func(b *bed) {
		b.work(workers.Options{Slots: 2})
		b.start()
		made := b.submit(batch.Request{Template: template(7), Arguments: numbered("go", 20)})
		require.Equal(b, batch.Done, b.await(made.ID, over).Status)
	})
}

// TestALostWorkersItemsRunElsewhere has one of two workers vanish.
func TestALostWorkersItemsRunElsewhere(t *testing.T) {
	t.Parallel()
	eachStoreWith(t, time.Second, func(b *bed) {
		var lost seam.Worker
		b.work(workers.Options{Slots: 1, Seam: &lost})
		b.start()
		arguments := append([][]string{{"block"}}, numbered("go", 30)...)
		made := b.submit(batch.Request{Template: template(1), Arguments: arguments})
		require.Eventually(b, func() bool { return len(b.ran("block")) == 1 }, time.Minute, time.Millisecond)
		lost.Vanish()
		b.work(workers.Options{Slots: 2})
		b.await(made.ID, func(batch.Batch) bool {
			p, err := b.store.Progress(context.Background(), made.ID)
			require.NoError(b, err)
			return p[batch.Done] == 30 && len(b.ran("block")) == 2
		})
		require.NoError(b, b.head.Cancel(b.Context(), made.ID, "enough"))
		require.Equal(b, batch.PermanentlyFailed, b.await(made.ID, over).Status)
	})
}

// settles is a store that says when it found a batch over.
type settles struct {
	batch.Store
	once sync.Once
	over chan struct{}
}

func (s *settles) Settle(ctx context.Context, id string, now time.Time) (batch.Batch, error) {
	got, err := s.Store.Settle(ctx, id, now)
	if err == nil && got.Status.Over() {
		s.once.Do(func() { close(s.over) })
	}
	return got, err
}

// TestACancelSettlesChunks cancels a batch of which an item ends only after the head found the
// batch over: its chunk is over then, too.
func TestACancelSettlesChunks(t *testing.T) {
	t.Parallel()
	eachStore(t, func(b *bed) {
		found := &settles{Store: b.store, over: make(chan struct{})}
		_, runs := b.store.(batch.Recorder)
		if !runs {
			b.options.Store = found
		}
		w, err := workers.FromCluster(b.cluster, workers.Options{Slots: 1})
		require.NoError(b, err)
		begun := make(chan struct{})
		require.NoError(b, w.Register("run", func(context.Context, []byte) ([]byte, error) {
			close(begun)
			<-found.over
			return nil, nil
		}))
		storetest.Background(b, w.Run)
		<-w.Ready()
		b.start()
		made := b.submit(batch.Request{Template: template(1), Arguments: numbered("stay", 1)})
		<-begun
		require.NoError(b, b.head.Cancel(b.Context(), made.ID, "enough"))
		if runs {
			close(found.over)
		}
		require.Eventually(b, func() bool {
			chunks, err := b.store.Chunks(b.Context(), made.ID)
			require.NoError(b, err)
			return len(chunks) == 1 && chunks[0].Status.Over()
		}, 20*time.Second, time.Millisecond)
	})
}

// rollOfTheDead is a dispatcher whose first roll call names a worker that has gone.
type rollOfTheDead struct {
	head.Dispatcher
	held atomic.Int64
}

func (r *rollOfTheDead) RollCall(ctx context.Context, t *batch.Template) ([]head.Candidate, error) {
	if r.held.Add(1) == 1 {
		return []head.Candidate{{Worker: "00000000000000dd"}}, nil
	}
	return r.Dispatcher.RollCall(ctx, t)
}

// TestAWorkerGoesAfterTheRollCall has the worker that a batch was to go to be gone by then:
// another one gets it.
func TestAWorkerGoesAfterTheRollCall(t *testing.T) {
	t.Parallel()
	eachStore(t, func(b *bed) {
		b.work(workers.Options{Slots: 2})
		dispatcher := &rollOfTheDead{Dispatcher: b.options.Dispatcher}
		b.options.Dispatcher, b.options.BootDelay = dispatcher, time.Hour
		b.start()
		made := b.submit(batch.Request{Template: template(1), Arguments: numbered("go", 20)})
		require.Equal(b, batch.Done, b.await(made.ID, over).Status)
		require.Greater(b, dispatcher.held.Load(), int64(1))
	})
}

// TestAHeadResumes stops a head midway; another one goes on.
func TestAHeadResumes(t *testing.T) {
	t.Parallel()
	eachStore(t, func(b *bed) {
		b.work(workers.Options{Slots: 2})
		stop := b.start()
		made := b.submit(batch.Request{Template: template(1), Arguments: numbered("go", 500)})
		b.await(made.ID, func(batch.Batch) bool {
			p, err := b.store.Progress(context.Background(), made.ID)
			require.NoError(b, err)
			return p[batch.Done] > 0
		})
		stop()
		b.start()
		require.Equal(b, batch.Done, b.await(made.ID, over).Status)
		for _, item := range b.items(made.ID) {
			require.Len(b, b.ran(strings.Join(item.Arguments, " ")), 1, "each ran once")
		}
	})
}

// TestTwoHeadsDoNoHarm lets two heads drive the same batches.
func TestTwoHeadsDoNoHarm(t *testing.T) {
	t.Parallel()
	eachStore(t, func(b *bed) {
		b.work(workers.Options{Slots: 2})
		b.work(workers.Options{Slots: 2})
		b.options.RequeueInterval = 5 * time.Millisecond
		b.start()
		b.start()
		var ids []string
		for range 5 {
			r := batch.Request{Template: template(2), Arguments: numbered("second", 40), MaxAttempts: 2}
			ids = append(ids, b.submit(r).ID)
		}
		for _, id := range ids {
			require.Equal(b, batch.Done, b.await(id, over).Status)
			for _, item := range b.items(id) {
				require.True(b, item.Status.Over())
				require.LessOrEqual(b, item.Attempts, 2)
			}
		}
	})
}

func TestKeysMakeBatchesRepeatable(t *testing.T) {
	t.Parallel()
	eachStore(t, func(b *bed) {
		b.start()
		r := batch.Request{Template: template(1), Arguments: numbered("go", 3), Key: "k"}
		first, existed, err := b.head.Submit(b.Context(), r)
		require.NoError(b, err)
		require.False(b, existed)
		again, existed, err := b.head.Submit(b.Context(), r)
		require.NoError(b, err)
		require.True(b, existed)
		require.Equal(b, first.ID, again.ID)
		r.Arguments[1][1] = "other"
		_, _, err = b.head.Submit(b.Context(), r)
		require.ErrorIs(b, err, batch.ErrExists)
		r.Key = ""
		other := b.submit(r)
		require.NotEqual(b, first.ID, other.ID)
	})
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	eachStore(t, func(b *bed) {
		b.start()
		for _, r := range []batch.Request{
			{Template: template(1)}, {Template: template(-2), Arguments: numbered("x", 1)},
			{Template: batch.Template{FunctionID: "none", Method: "x.wasm"}, Arguments: numbered("x", 1)},
		} {
			_, _, err := b.head.Submit(b.Context(), r)
			require.ErrorIs(b, err, batch.ErrBadBatch)
		}
		require.ErrorIs(b, b.head.Cancel(b.Context(), "none", ""), batch.ErrNotFound)
		require.ErrorIs(b, b.head.Delete(b.Context(), "none"), batch.ErrNotFound)
		list, err := b.store.List(b.Context(), false, "", 10)
		require.NoError(b, err)
		require.Empty(b, list)
	})
}
