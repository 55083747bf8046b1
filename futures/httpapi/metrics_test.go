package httpapi

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestQueuesWithMetricsAreFew fills more queues than may have metrics of their
// own.
func TestQueuesWithMetricsAreFew(t *testing.T) {
	t.Parallel()
	counts, want := layout.Counts{}, int64(0)
	for i := range 5000 {
		for _, group := range []string{"", "a"} {
			counts[layout.CountKey{Queue: fmt.Sprint("q", i), Owner: group, State: layout.Ready}] = int64(i)
			want += int64(i)
		}
	}
	sums, got := largestQueues(counts), int64(0)
	require.Len(t, sums, maxQueues+1)
	for _, states := range sums {
		got += states[layout.Ready]
	}
	require.Equal(t, want, got)
	require.EqualValues(t, 2*4999, sums["q4999"][layout.Ready])
	require.NotContains(t, sums, "q0")
	require.Positive(t, sums[otherQueues][layout.Ready])
}
