package rest

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

func TestABatchWithoutItemsIsEmpty(t *testing.T) {
	t.Parallel()
	o := outcomeOf(&batch.Batch{Status: batch.Done}, batch.Progress{})
	require.Equal(t, outcome{"empty", "204", "the batch has no items", 200}, o)
}

func TestAStoreThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	p := problemOf(fmt.Errorf("read batch b: %w", batch.ErrUnavailable))
	require.Equal(t, http.StatusServiceUnavailable, p.Status)
	require.Equal(t, "store_unavailable", p.Code)
}

func TestTimeLeftIsSaidOnceItIsKnown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		over int
		took time.Duration
		left float64
	}{{0, time.Hour, 0}, {4, time.Hour, 0}, {50, time.Second, 0}, {5, 5 * time.Second, 95}, {50, 10 * time.Second, 10}} {
		v := BatchView{Items: 100, Status: batch.InProgress}
		v.estimate(c.over, c.took)
		if c.left == 0 {
			require.Nil(t, v.SecondsLeft, c)
			continue
		}
		require.InDelta(t, c.left, *v.SecondsLeft, 0.001)
	}
}

// TestARateCountsWhatRan, and not what a cancel has ended.
func TestARateCountsWhatRan(t *testing.T) {
	t.Parallel()
	p := batch.Progress{batch.Done: 3, batch.PermanentlyFailed: 97}
	require.Equal(t, 3, ranOf(batch.PermanentlyFailed, p))
	require.Equal(t, 100, ranOf(batch.Done, p))
	require.Equal(t, 100, ranOf(batch.InProgress, p))
}
