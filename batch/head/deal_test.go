package head

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

// TestItemsAreDealtRoundRobin deals items in two parts, as long lists are read,
// and some that a worker has failed.
func TestItemsAreDealtRoundRobin(t *testing.T) {
	t.Parallel()
	items := make([]batch.Item, 10)
	for i := range items {
		items[i].Index = i
	}
	workers, turn := []Candidate{{Worker: "a"}, {Worker: "b"}, {Worker: "c"}}, 0
	dealt := func(items []batch.Item) (indexes [][]int) {
		for _, part := range deal(items, workers, &turn) {
			indexes = append(indexes, indexesOf(part))
		}
		return indexes
	}
	require.Equal(t, [][]int{{0, 3}, {1, 4}, {2}}, dealt(items[:5]))
	require.Equal(t, [][]int{{6, 9}, {7}, {5, 8}}, dealt(items[5:]))

	turn = 0
	items[0].FailedOn, items[1].FailedOn, items[2].FailedOn = []string{"a"}, []string{"b", "c"}, []string{"a", "b", "c"}
	require.Equal(t, [][]int{{1, 3}, {0}, {2}}, dealt(items[:4]))
}
