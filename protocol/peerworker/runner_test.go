package peerworker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestWhatIsForgottenStopsBeforeItRunsAgain has the chunk of an item be forgotten that runs, as one whose order could
// not be written, and the item ordered again. The worker knows it by its id alone: it begins again once it has stopped,
// and neither its end nor its result count for the other order.
func TestWhatIsForgottenStopsBeforeItRunsAgain(t *testing.T) {
	t.Parallel()
	w := sharing(t, use{chunks: 10, items: 100, bytes: 1 << 20}, headID)
	r := w.runner
	var stopped []layout.ID
	r.Attach(func() {}, func(id layout.ID) { stopped = append(stopped, id) })
	it := item{future: layout.KeyedID("future", ""), attempt: 1}
	order := func(chunk string) *chunk {
		m := goOrder("f", "a")
		m.ChunkID = chunk
		c := newChunk(w, chunkName{headID, chunk}, m, 1, []item{it})
		require.True(t, w.admit(c, 0))
		r.hold(c, []fdbmodel.Submission{{ID: c.ids[0], Spec: layout.Spec{Function: "go:f"}}})
		r.start(c)
		return c
	}
	take := func() []fdbmodel.ClaimedFuture {
		taken, _ := r.Take(fdbmodel.ClaimRequest{Max: 10})
		return taken
	}
	forget := func(c *chunk) {
		r.forget(c, c.ids)
		w.remove(c)
	}
	one := order("1")
	first := take()
	require.Len(t, first, 1)
	forget(one)
	require.Equal(t, one.ids, stopped)
	two := order("2")
	require.Empty(t, take(), "it runs")
	r.End(fdbmodel.Completion{Future: &first[0], Relinquish: true})
	require.True(t, two.wants(0))
	second := take()
	require.Len(t, second, 1)
	r.End(fdbmodel.Completion{Future: &second[0], Result: &layout.Result{Value: []byte("x")}})
	require.False(t, two.wants(0))
	forget(two)
	require.Empty(t, r.items)

	third := order("3")
	last := take()
	forget(third)
	value, err := r.Writer(third.ids[0])
	require.NoError(t, err)
	_, err = value.Write([]byte("large"))
	require.NoError(t, err)
	r.End(fdbmodel.Completion{Future: &last[0], Result: &layout.Result{Size: 5}})
	require.Empty(t, r.items)
	require.Empty(t, r.spools)
	require.Empty(t, w.blobs.known)
}
