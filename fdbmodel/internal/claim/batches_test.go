package claim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestBatchesAreExhaustedOnce holds two claims whose futures end apart, together, and in concurrent transactions.
func TestBatchesAreExhaustedOnce(t *testing.T) {
	t.Parallel()
	id := func(n byte) layout.ID { return layout.ID{n} }
	var b Batches
	require.Empty(t, b.Exhausted([]Ended{{id(1), 1}}), "of a claim that is not held")
	b.Hold(1, []layout.ReadyEntry{{ID: id(1)}, {ID: id(2)}})
	b.Hold(2, []layout.ReadyEntry{{ID: id(3)}, {ID: id(4)}, {ID: id(5)}})
	require.ElementsMatch(t, []layout.ID{id(1), id(2), id(3), id(4), id(5)}, b.All())

	both := []Ended{{id(4), 2}, {id(2), 1}, {id(1), 1}}
	require.Equal(t, []int64{1}, b.Exhausted(both))
	require.Empty(t, b.Exhausted([]Ended{{id(1), 2}, {id(2), 2}}), "the same futures of another claim")
	b.Release(both, []int64{1})
	require.ElementsMatch(t, []layout.ID{id(3), id(5)}, b.All())

	one, other := []Ended{{id(3), 2}}, []Ended{{id(5), 2}}
	require.Empty(t, b.Exhausted(one))
	require.Empty(t, b.Exhausted(other), "neither knows of the other")
	b.Release(one, nil)
	b.Release(other, nil)
	require.Empty(t, b.All())
	require.Equal(t, []int64{2}, b.Exhausted(nil), "the next one clears it")
	b.Release(nil, []int64{2})
	require.Empty(t, b.Exhausted(nil))
}
