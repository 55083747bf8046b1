package peerworker

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
)

// orderedAgain is an order for a module of an attempt that runs for an earlier order, and of
// another one.
func orderedAgain(t *testing.T, m *protocol.WorkOrderBatch) *protocol.WorkOrderBatch {
	later := moduleOrder(cidOf(t, []byte("\x00asm some module")), []string{"a"}, []string{"b"})
	later.Items[0].ID, later.Items[0].Attempt = m.Items[0].ID, m.Items[0].Attempt
	return later
}

// TestAnOrderThatWaitsForItsModuleDeliversWhatItHas has an item end by an earlier order, and one
// be wanted back, while the module of their order does not come.
func TestAnOrderThatWaitsForItsModuleDeliversWhatItHas(t *testing.T) {
	t.Parallel()
	everyState(t, func(t *testing.T, n *memory, o Options) {
		h := newHead(t, n, headID)
		h.stuck = true
		o.Modules = echoRunner{}
		made, called, release := holding(t, o)
		r := start(t, made, n)
		m := goOrder("held", "a")
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
		<-called
		later := orderedAgain(t, m)
		require.Equal(t, protocol.CodeAccepted, h.order(later).Code)
		close(release)
		h.await("the first item", func() bool { return len(h.outcomes[later.ChunkID][0]) == 1 })
		require.Equal(t, protocol.CodeOK, h.takeBack(later, 1))
		require.Equal(t, protocol.CodeUnavailable, h.all(later.ChunkID, 2)[1].Code)
		r.idle()
	})
}

// TestWhatRunsIsNotGivenBack has a module not come at all, while an item of its order runs for an
// earlier one: that item has its result, and the other one is given back.
func TestWhatRunsIsNotGivenBack(t *testing.T) {
	t.Parallel()
	everyState(t, func(t *testing.T, n *memory, o Options) {
		h := newHead(t, n, headID)
		o.Modules = echoRunner{}
		made, called, release := holding(t, o)
		r := start(t, made, n)
		m := goOrder("held", "a")
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
		<-called
		later := orderedAgain(t, m)
		require.Equal(t, protocol.CodeAccepted, h.order(later).Code)
		h.await("the second item", func() bool { return len(h.outcomes[later.ChunkID][1]) == 1 })
		close(release)
		all := h.all(later.ChunkID, 2)
		require.Equal(t, "a", string(all[0].Value), "%+v", all[0])
		require.Equal(t, protocol.CodeUnavailable, all[1].Code)
		r.idle()
	})
}

// TestACancelWithoutAReasonIsRemembered has a head cancel without a word, and the worker die before
// the function has stopped.
func TestACancelWithoutAReasonIsRemembered(t *testing.T) {
	t.Parallel()
	n, h, o := withState(t)
	made, called, release := deaf(t, o)
	r := start(t, made, n)
	m := goOrder("deaf", "a")
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	<-called
	require.Equal(t, protocol.CodeOK, h.order(&protocol.CancelOrder{ChunkID: m.ChunkID}).Code)
	n.part(headID)
	require.NoError(t, r.node.db.Close())
	close(release)
	require.Error(t, <-r.done)
	close(r.done)

	r, h = again(t, o, nil)
	x := h.all(m.ChunkID, 1)[0]
	require.Equal(t, string(layout.KindCancelled), x.Kind, "%+v", x)
	r.idle()
}

// TestEqualResultsHaveSourcesOfTheirOwn has two items with the same large result: the journal reads
// that of the item that it writes, since the other one may go at any time.
func TestEqualResultsHaveSourcesOfTheirOwn(t *testing.T) {
	t.Parallel()
	w, err := New(options(newMemory()))
	require.NoError(t, err)
	value := bytes.Repeat([]byte("x"), 2<<20)
	first, second := layout.KeyedID("", "first"), layout.KeyedID("", "second")
	name := blobName{headID, w.blobs.hold(headID, first, value, nil).ID}
	w.blobs.hold(headID, second, value, nil)
	require.Equal(t, second, w.blobs.find(name, second).item)
	w.blobs.drop(name, first)
	require.Nil(t, w.blobs.find(name, first))
	require.EqualValues(t, len(value), w.blobs.find(name, second).content().Size())
	w.blobs.drop(name, second)
}
