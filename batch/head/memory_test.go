package head

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/memstore"
)

// plain is a store that runs its items.
type plain struct{ batch.Store }

// TestManyItemsAreNotHeldWhileABatchWaitsForWorkers has new batches wait. All their items are given out in the end.
func TestManyItemsAreNotHeldWhileABatchWaitsForWorkers(t *testing.T) {
	t.Parallel()
	for n, held := range map[int]int{2: 2, roundPage: roundPage, roundPage + 1: 0} {
		store := memstore.New()
		b := batch.Batch{ID: "b", MaxAttempts: 1, CreatedAt: time.Now()}
		require.NoError(t, store.Create(t.Context(), &b, make([][]string, n)))
		calls := &mute{}
		d := newDriver(New(Options{Store: plain{store}, Dispatcher: calls}), b.ID)
		d.fresh = make([]batch.Item, n)
		for i := range d.fresh {
			d.fresh[i].Index = i
		}
		_, _, err := d.step(t.Context())
		require.NoError(t, err)
		require.Equal(t, held, len(d.fresh))
		calls.workers = []Candidate{{Worker: "w"}}
		_, _, err = d.step(t.Context())
		require.NoError(t, err)
		progress, err := store.Progress(t.Context(), b.ID)
		require.NoError(t, err)
		require.Equal(t, n, progress[batch.InProgress])
	}
}

// runs is a dispatcher that notes what a worker is to run.
type runs struct {
	Dispatcher
	orders chan Order
}

func (r *runs) Run(_ context.Context, o Order, _ func(context.Context, []batch.Completion) error) error {
	r.orders <- o
	return nil
}

// TestItemsThatAreResumedHaveNoResults resumes an item that has failed once, with output.
func TestItemsThatAreResumedHaveNoResults(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	b := batch.Batch{ID: "b", MaxAttempts: 2, CreatedAt: time.Now()}
	require.NoError(t, store.Create(t.Context(), &b, [][]string{{"a"}}))
	for _, chunk := range []string{"first", "second"} {
		given, err := store.Assign(t.Context(), &batch.Chunk{ID: chunk, Batch: b.ID, Worker: "w"}, []int{0})
		require.NoError(t, err)
		require.Equal(t, []int{0}, given)
		if chunk == "first" {
			failed := batch.Completion{Failed: true, Result: batch.Result{Stdout: "long"}}
			_, err = store.Complete(t.Context(), b.ID, chunk, []batch.Completion{failed})
			require.NoError(t, err)
		}
	}
	calls := &runs{orders: make(chan Order, 1)}
	h := New(Options{Store: store, Dispatcher: calls})
	require.NoError(t, newDriver(h, b.ID).resumeOpen(t.Context(), store, &b))
	o := <-calls.orders
	h.wg.Wait()
	require.Len(t, o.Items, 1)
	require.Equal(t, 1, o.Items[0].Attempts)
	require.Nil(t, o.Items[0].Result)
}
