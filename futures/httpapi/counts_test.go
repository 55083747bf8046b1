package httpapi

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestQueuesThatAreShownAreFew counts more queues and owners than are shown.
func TestQueuesThatAreShownAreFew(t *testing.T) {
	t.Parallel()
	found, want := layout.Counts{}, int64(0)
	for i := range 5000 {
		for _, owner := range []string{"", "a"} {
			found[layout.CountKey{Queue: fmt.Sprint("q", i), Owner: owner, State: layout.Ready}] = int64(i)
			want += int64(i)
		}
	}
	shown := countsOf(found)
	for _, list := range [][]Count{shown.all, shown.queues} {
		require.Len(t, list, maxQueues+1)
		require.Equal(t, otherQueues, list[0].Queue)
		got := int64(0)
		for _, c := range list {
			got += c.Futures
		}
		require.Equal(t, want, got)
	}
	require.Equal(t, Count{Queue: "q4999", State: "ready", Futures: 2 * 4999}, shown.queues[maxQueues])
	require.Equal(t, Count{Queue: "q4999", Owner: "a", State: "ready", Futures: 4999}, shown.all[maxQueues])
}
