package head

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/memstore"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/internal/clock"
)

// watched is a store that counts the drivers that use it.
type watched struct {
	batch.Recorder
	drivers atomic.Int32
}

func (s *watched) Watch(ctx context.Context, id string) (<-chan struct{}, func(), bool, error) {
	changed, stop, ok, err := s.Recorder.Watch(ctx, id)
	if err == nil && ok {
		s.drivers.Add(1)
	}
	return changed, func() {
		stop()
		s.drivers.Add(-1)
	}, ok, err
}

// lonely is a dispatcher that has no workers.
type lonely struct{ Dispatcher }

func (lonely) Check(context.Context, *batch.Template) error { return nil }

func (lonely) RollCall(context.Context, *batch.Template) ([]Candidate, error) { return nil, nil }

// TestNoBatchIsDrivenAfterTheEnd submits batches to a head that ends meanwhile.
func TestNoBatchIsDrivenAfterTheEnd(t *testing.T) {
	t.Parallel()
	for round := range 300 {
		store := &watched{Recorder: memstore.New()}
		h := New(Options{Store: store, Dispatcher: lonely{}, WorkerWait: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- h.Run(ctx) }()
		var clients sync.WaitGroup
		for range 2 {
			clients.Go(func() {
				_, _, err := h.Submit(t.Context(), batch.Request{
					Template: batch.Template{FunctionID: "f"}, Arguments: [][]string{{"a"}},
				})
				assert.NoError(t, err)
			})
		}
		for range round {
			runtime.Gosched() // and tells nobody
		}
		cancel()
		require.NoError(t, <-ended)
		require.Zero(t, store.drivers.Load())
		clients.Wait()
		require.Zero(t, store.drivers.Load())
	}
}

// instant is a dispatcher with a worker that has run each item at once.
type instant struct{ lonely }

func (instant) RollCall(context.Context, *batch.Template) ([]Candidate, error) {
	return []Candidate{{Worker: "w", Free: 1}}, nil
}

func (instant) Run(ctx context.Context, order Order, deliver func(context.Context, []batch.Completion) error) error {
	ended := make([]batch.Completion, len(order.Items))
	for i, item := range order.Items {
		ended[i] = batch.Completion{Index: item.Index}
	}
	return deliver(ctx, ended)
}

// TestADriverEndsWithItsBatch has a head forget batches that are over.
func TestADriverEndsWithItsBatch(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store := &watched{Recorder: memstore.New()}
		h := New(Options{Store: store, Dispatcher: instant{}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- h.Run(ctx) }()
		synctest.Wait()
		b, _, err := h.Submit(t.Context(), batch.Request{
			Template: batch.Template{FunctionID: "f"}, Arguments: [][]string{{"a"}, {"b"}},
		})
		require.NoError(t, err)
		require.NoError(t, clock.Wait(t.Context(), clock.Real{}, time.Now().Add(10*time.Minute)))
		b, err = store.Get(t.Context(), b.ID)
		require.NoError(t, err)
		require.Equal(t, batch.Done, b.Status)
		require.Zero(t, store.drivers.Load(), "it is over and still driven")
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestALargeChunkIsResumedWhole has a head go on with a chunk whose items are read in pages.
func TestALargeChunkIsResumedWhole(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		store, indexes := memstore.New(), make([]int, 2*comparePage+1)
		arguments := make([][]string, len(indexes))
		for i := range indexes {
			indexes[i], arguments[i] = i, []string{"a"}
		}
		b := &batch.Batch{ID: "b", MaxAttempts: 1, CreatedAt: time.Now(), Template: batch.Template{FunctionID: "f"}}
		require.NoError(t, store.Create(t.Context(), b, arguments))
		chunk := &batch.Chunk{ID: "c", Batch: "b", Worker: "w", Status: batch.InProgress, CreatedAt: time.Now()}
		assigned, err := store.Assign(t.Context(), chunk, indexes)
		require.NoError(t, err)
		require.Len(t, assigned, len(indexes))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.NoError(t, New(Options{Store: store, Dispatcher: instant{}}).Run(ctx))
		got, err := store.Get(t.Context(), "b")
		require.NoError(t, err)
		require.Equal(t, batch.Done, got.Status)
	})
}
