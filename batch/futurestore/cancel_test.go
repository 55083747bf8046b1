package futurestore_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/batches"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// cutting is a store that calls cut before one of the transactions that begin.
type cutting struct {
	kv.Database
	left *atomic.Int64
	cut  func()
}

func (c cutting) Begin(o kv.Options) kv.Tx {
	if c.left.Add(-1) == 0 {
		c.cut()
	}
	return c.Database.Begin(o)
}

// TestCancelThatWasCutOffIsCompleted ends the process that cancels a batch
// before each of its transactions. Settle completes the cancel, or finds that
// it never began.
func TestCancelThatWasCutOffIsCompleted(t *testing.T) {
	t.Parallel()
	d := newData(t)
	arguments := make([][]string, 2*layout.MaxSubmit)
	for i := range arguments {
		arguments[i] = []string{fmt.Sprint(i)}
	}
	completed := 0
	for n := 1; ; n++ {
		ctx, cut := context.WithCancel(t.Context())
		left := new(atomic.Int64)
		cluster, err := fdbmodel.Open(t.Context(), cutting{d.db, left, cut}, "batches", fdbmodel.Options{})
		require.NoError(t, err)
		b := &batch.Batch{
			ID: fmt.Sprintf("11111111-2222-4333-8444-%012d", n), Template: suiteFunction, MaxAttempts: 1,
		}
		s := futurestore.New(cluster, futurestore.Options{})
		require.NoError(t, s.Create(t.Context(), b, arguments))
		left.Store(int64(n))
		failed := s.Cancel(ctx, b.ID, "enough", time.Now())
		cut()

		s = futurestore.New(d.cluster, futurestore.Options{})
		got, err := s.Settle(t.Context(), b.ID, time.Now())
		require.NoError(t, err)
		progress, err := s.Progress(t.Context(), b.ID)
		require.NoError(t, err)
		switch got.Status {
		case batch.Created:
			require.Error(t, failed)
			require.Equal(t, len(arguments), progress[batch.Created])
		default:
			require.Equal(t, batch.PermanentlyFailed, got.Status, "cut off before transaction %d", n)
			require.Equal(t, "enough", got.Reason)
			require.Equal(t, len(arguments), progress[batch.PermanentlyFailed])
		}
		if failed == nil {
			break
		}
		if got.Status.Over() {
			completed++
		}
	}
	require.Positive(t, completed)
}

// TestNothingIsGivenOutOfABatchThatIsBeingCancelled assigns between the halves of
// a cancel.
func TestNothingIsGivenOutOfABatchThatIsBeingCancelled(t *testing.T) {
	t.Parallel()
	d := newData(t)
	s := &store{futurestore.New(d.cluster, futurestore.Options{}), d}
	b := &batch.Batch{ID: "11111111-2222-4333-8444-555555555555", Template: suiteFunction, MaxAttempts: 1}
	require.NoError(t, s.Create(t.Context(), b, [][]string{{"a"}}))
	begin := func() {
		_, err := batches.Of(d.cluster).Update(t.Context(), b.ID, func(r *layout.BatchRecord) (bool, error) {
			r.CancelledAt, r.Reason = 7, "enough"
			return true, nil
		})
		require.NoError(t, err)
	}
	begin()
	assigned, err := s.Assign(t.Context(), &batch.Chunk{ID: "chunk", Batch: b.ID, Worker: "w"}, []int{0})
	require.NoError(t, err)
	require.Empty(t, assigned)
	require.ErrorIs(t, s.SetReason(t.Context(), b.ID, "waits"), batch.ErrState)
	// A retry comes after the cancel.
	n, err := s.Retry(t.Context(), b.ID)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	got, err := s.Get(t.Context(), b.ID)
	require.NoError(t, err)
	require.Equal(t, batch.InProgress, got.Status)
	require.Empty(t, got.Reason)
	// Another cancel completes the first one.
	begin()
	require.NoError(t, s.Cancel(t.Context(), b.ID, "too much", time.Now()))
	got, err = s.Get(t.Context(), b.ID)
	require.NoError(t, err)
	require.Equal(t, batch.PermanentlyFailed, got.Status)
	require.Equal(t, "enough", got.Reason)
	require.EqualValues(t, 7, got.FinishedAt.UnixMilli())
}
