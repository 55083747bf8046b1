package head_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/batch/memstore"
	"github.com/futura-run/futura/internal/bubble"
)

// TestChunksAreResumedAtOnce has a head go that had two chunks of one batch with
// workers, none of which answers the next head before both were asked.
func TestChunksAreResumedAtOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := memstore.New()
		create(t, store, "b", 2, 4)
		for i, chunk := range []string{"one", "two"} {
			c := batch.Chunk{ID: chunk, Batch: "b", Worker: "w", CreatedAt: time.Now()}
			_, err := store.Assign(t.Context(), &c, []int{2 * i, 2*i + 1})
			require.NoError(t, err)
		}
		m := &meeting{reach: reach{&outage{Recorder: store}}}
		m.two.Add(2)
		runHead(t, 2*time.Minute, store, m)
		requireStatus(t, store, "b", batch.Done)
		require.NoError(t, store.Close(t.Context()))
	})
}

// TestChunksAreResumedOnceTheStoreAnswers has a store that does not say at first which chunks a head before this one
// has left, or which of their items are in progress.
func TestChunksAreResumedOnceTheStoreAnswers(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := memstore.New()
		o := &outage{Recorder: store}
		o.chunks.Store(2)
		o.items.Store(2)
		create(t, store, "b", 1, 2)
		c := batch.Chunk{ID: "old", Batch: "b", Worker: "w", CreatedAt: time.Now()}
		_, err := store.Assign(t.Context(), &c, []int{0, 1})
		require.NoError(t, err)
		runHead(t, time.Minute, o, reach{o})
		requireStatus(t, store, "b", batch.Done)
		require.NoError(t, store.Close(t.Context()))
	})
}

// ordered is a dispatcher that counts the items of orders.
type ordered struct {
	reach
	items atomic.Int32
}

func (o *ordered) Run(ctx context.Context, order head.Order, deliver func(context.Context, []batch.Completion) error,
) error {
	o.items.Add(int32(len(order.Items)))
	return o.reach.Run(ctx, order, deliver)
}

func indexes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// TestALargeChunkIsResumedOnce has a chunk with more items in progress than are read at a time.
func TestALargeChunkIsResumedOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		const items = 1001
		store := memstore.New()
		create(t, store, "b", 1, items)
		c := batch.Chunk{ID: "old", Batch: "b", Worker: "w", CreatedAt: time.Now()}
		assigned, err := store.Assign(t.Context(), &c, indexes(items))
		require.NoError(t, err)
		require.Len(t, assigned, items)
		o := &ordered{reach: reach{&outage{Recorder: store}}}
		runHead(t, time.Minute, store, o)
		requireStatus(t, store, "b", batch.Done)
		require.EqualValues(t, items, o.items.Load())
		require.NoError(t, store.Close(t.Context()))
	})
}

// TestABatchTakesAsManyWorkersAsItHasItems has fewer of them than the workers that it asks for: it waits for no more.
func TestABatchTakesAsManyWorkersAsItHasItems(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := memstore.New()
		create(t, store, "b", 2, 1)
		runHead(t, time.Second, store, reach{&outage{Recorder: store}})
		requireStatus(t, store, "b", batch.Done)
		require.NoError(t, store.Close(t.Context()))
	})
}

// failsOnce is a dispatcher whose first attempt of item 0 fails, while that of the others takes as long as it is not
// tried again.
type failsOnce struct {
	reach
	runs  atomic.Int32
	again chan struct{}
}

func (f *failsOnce) Run(ctx context.Context, order head.Order, deliver func(context.Context, []batch.Completion) error,
) error {
	if f.runs.Add(1) > 1 {
		close(f.again)
		return f.reach.Run(ctx, order, deliver)
	}
	if err := deliver(ctx, []batch.Completion{{Index: 0, Failed: true}}); err != nil {
		return err
	}
	select {
	case <-f.again:
		return deliver(ctx, []batch.Completion{{Index: 1}})
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestAnItemIsTriedAgainWhenItIsDue has a head that otherwise looks once an hour.
func TestAnItemIsTriedAgainWhenItIsDue(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := memstore.New()
		create(t, store, "b", 1, 2)
		f := &failsOnce{reach: reach{&outage{Recorder: store}}, again: make(chan struct{})}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		o := head.Options{Store: store, Dispatcher: f, Look: time.Hour, Backoff: time.Second}
		require.NoError(t, head.New(o).Run(ctx))
		requireStatus(t, store, "b", batch.Done)
		require.NoError(t, store.Close(t.Context()))
	})
}

// arrivals is a dispatcher whose workers come one after another, a few seconds after its
// start.
type arrivals struct {
	reach
	start time.Time
	after []time.Duration

	mu     sync.Mutex
	orders []time.Duration // when orders came
}

func (a *arrivals) RollCall(context.Context, *batch.Template) (there []head.Candidate, err error) {
	for i, after := range a.after {
		if time.Since(a.start) >= after {
			there = append(there, head.Candidate{Worker: fmt.Sprint(i)})
		}
	}
	return there, nil
}

func (a *arrivals) Run(ctx context.Context, order head.Order, deliver func(context.Context, []batch.Completion) error,
) error {
	a.mu.Lock()
	a.orders = append(a.orders, time.Since(a.start).Truncate(time.Second))
	a.mu.Unlock()
	return a.reach.Run(ctx, order, deliver)
}

// TestABatchThatIsFoundGoesOnOnceItsWorkersAreThere has a head start on a batch that is
// halfway, and on one that has not begun.
func TestABatchThatIsFoundGoesOnOnceItsWorkersAreThere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		nodes    int
		after    []time.Duration
		expected []time.Duration
	}{
		"there already":         {1, []time.Duration{0}, []time.Duration{0}},
		"the first of two":      {1, []time.Duration{5 * time.Second, time.Minute}, []time.Duration{5 * time.Second}},
		"both":                  {2, []time.Duration{0, 9 * time.Second}, []time.Duration{9 * time.Second, 9 * time.Second}},
		"one of two never":      {2, []time.Duration{0}, []time.Duration{30 * time.Second}},
		"none, then one of two": {2, []time.Duration{40 * time.Second}, []time.Duration{40 * time.Second}},
		"all that come in time": {
			-1, []time.Duration{0, 9 * time.Second, time.Hour}, []time.Duration{30 * time.Second, 30 * time.Second},
		},
	} {
		for _, begun := range []bool{false, true} {
			t.Run(fmt.Sprint(name, begun), func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(t *testing.T) { testFoundBatch(t, begun, c.nodes, c.after, c.expected) })
			})
		}
	}
}

func testFoundBatch(t *testing.T, begun bool, nodes int, after, expected []time.Duration) {
	store := memstore.New()
	b := &batch.Batch{ID: "b", MaxAttempts: 1, CreatedAt: time.Now(), Template: batch.Template{FunctionID: "f"}}
	b.Template.Config.Nodes = nodes
	require.NoError(t, store.Create(t.Context(), b, [][]string{{"a"}, {"b"}, {"c"}}))
	if begun {
		chunk := batch.Chunk{ID: "old", Batch: "b", Worker: "gone", CreatedAt: time.Now()}
		_, err := store.Assign(t.Context(), &chunk, []int{0})
		require.NoError(t, err)
		_, err = store.Complete(t.Context(), "b", "old", []batch.Completion{{Index: 0}})
		require.NoError(t, err)
	}
	a := &arrivals{reach: reach{&outage{Recorder: store}}, start: time.Now(), after: after}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	o := head.Options{Store: store, Dispatcher: a, BootDelay: 30 * time.Second, WorkerWait: 10 * time.Second}
	require.NoError(t, head.New(o).Run(ctx))
	require.Equal(t, expected, a.orders)
	requireStatus(t, store, "b", batch.Done)
	require.NoError(t, store.Close(t.Context()))
}
