package memstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/batchtest"
	"github.com/futura-run/futura/batch/memstore"
	"github.com/futura-run/futura/internal/bubble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	t.Parallel()
	batchtest.Run(t, batchtest.Harness{Open: func(t *testing.T) batch.Store {
		s := memstore.New()
		t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
		return s
	}})
}

// TestAHundredThousandItems works off a batch as a head does, and checks that
// looking for what waits does not become a walk over the whole batch each time.
func TestAHundredThousandItems(t *testing.T) {
	t.Parallel()
	bubble.Test(t, testAHundredThousandItems) // time stands still
}

func testAHundredThousandItems(t *testing.T) {
	const items, chunk = 100_000, 500
	now := time.Now().UTC()
	s := memstore.New()
	arguments := make([][]string, items)
	for i := range arguments {
		arguments[i] = []string{fmt.Sprint("https://example.com/", i)}
	}
	b := &batch.Batch{ID: uuid.NewString(), Template: batch.Template{FunctionID: "f", Method: "m"}, MaxAttempts: 2}
	require.NoError(t, s.Create(t.Context(), b, arguments))
	for first := 0; first < items; first += chunk {
		waiting, _, err := s.Waiting(t.Context(), b.ID, now, chunk)
		require.NoError(t, err)
		require.Len(t, waiting, chunk)
		require.Equal(t, first, waiting[0].Index)
		indexes := make([]int, chunk)
		ended := make([]batch.Completion, chunk)
		for i := range waiting {
			indexes[i] = waiting[i].Index
			ended[i] = batch.Completion{Index: waiting[i].Index, Result: batch.Result{Stdout: "x"}}
		}
		c := batch.Chunk{ID: uuid.NewString(), Batch: b.ID, Worker: "w"}
		given, err := s.Assign(t.Context(), &c, indexes)
		require.NoError(t, err)
		require.Equal(t, indexes, given)
		_, err = s.Complete(t.Context(), b.ID, c.ID, ended)
		require.NoError(t, err)
	}
	got, err := s.Settle(t.Context(), b.ID, now)
	require.NoError(t, err)
	require.Equal(t, batch.Done, got.Status)
	require.Equal(t, now, got.CreatedAt)
	progress, err := s.Progress(t.Context(), b.ID)
	require.NoError(t, err)
	require.Equal(t, batch.Progress{batch.Done: items}, progress)
}

// TestWhatIsReturnedIsACopy writes to what the store returned and to what it
// was given.
func TestWhatIsReturnedIsACopy(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	arguments := [][]string{{"a"}}
	b := &batch.Batch{ID: uuid.NewString(), Template: batch.Template{FunctionID: "f", Method: "m"}, MaxAttempts: 2}
	require.NoError(t, s.Create(t.Context(), b, arguments))
	arguments[0][0] = "changed"
	for range 2 {
		items, err := s.Items(t.Context(), b.ID, 0, 1)
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, items[0].Arguments)
		items[0].Arguments[0] = "changed"
	}
}

func TestClosedStoreIsEmpty(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	b := &batch.Batch{ID: uuid.NewString(), MaxAttempts: 1}
	require.ErrorIs(t, s.Create(t.Context(), b, nil), batch.ErrBadBatch)
	require.NoError(t, s.Create(t.Context(), b, [][]string{{}}))
	require.NoError(t, s.Close(t.Context()))
	_, err := s.Get(t.Context(), b.ID)
	require.ErrorIs(t, err, batch.ErrNotFound)
	name, durable := s.Describe()
	require.Equal(t, "memory", name)
	require.False(t, durable)
}
