package head

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/memstore"
)

// watched is a store that counts the drivers that use it.
type watched struct {
	batch.Store
	drivers atomic.Int32
}

func (s *watched) Watch(ctx context.Context, id string) (<-chan struct{}, func(), bool, error) {
	changed, stop, ok, err := s.Store.Watch(ctx, id)
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
		store := &watched{Store: memstore.New()}
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
