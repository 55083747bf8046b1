package head_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/memstore"
)

// TestChunksAreResumedAtOnce has a head go that had two chunks of one batch with
// workers, none of which answers the next head before both were asked.
func TestChunksAreResumedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
