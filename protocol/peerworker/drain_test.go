package peerworker

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
)

// TestAWorkerThatStopsAnswersHeadsOfB7S has a worker be stopped while it runs one of the items of an order of b7s's:
// the reply has its result, and none of those that it had not begun.
func TestAWorkerThatStopsAnswersHeadsOfB7S(t *testing.T) {
	t.Parallel()
	n := newMemory()
	n.b7s = true
	o := options(n)
	o.Slots = 1
	fake := newHead(t, n, headID)
	w, called, release := holding(t, o)
	r := start(t, w, n)
	h := &b7sHead{fake, n.handler}
	order := b7sOrderOf(t, []string{"a"}, []string{"b"}, []string{"c"}, []string{"d"}, []string{"e"})
	order.Template = protocol.Template{FunctionID: "go:held"}
	data, err := protocol.Encode(order, protocol.DialectChunk)
	require.NoError(t, err)
	h.receive(data)
	<-called
	r.stop()
	require.Eventually(t, w.stopping.Load, testTime, time.Millisecond)
	close(release)
	require.NoError(t, r.end())
	require.Len(t, h.sent, 1)
	m, err := protocol.Decode(h.next())
	require.NoError(t, err)
	results := m.(*protocol.WorkOrderBatchResponse).Results
	require.Equal(t, protocol.CodeOK, results[order.Template.ItemID([]string{"a"})].Code)
	require.Less(t, len(results), len(order.Arguments))
}

// deafNetwork has a head not answer goodbyes before another one has got its own.
type deafNetwork struct {
	*memory
	deaf  string
	other chan struct{}
	heard func()
	late  atomic.Bool
	left  chan time.Duration // for the goodbye to the deaf head
}

func (n *deafNetwork) Call(ctx context.Context, peer string, message []byte) ([]byte, error) {
	m, err := protocol.Decode(message)
	if err != nil {
		return nil, err
	}
	if _, bye := m.(*protocol.Goodbye); bye {
		if peer != n.deaf {
			n.heard()
		} else {
			due, _ := ctx.Deadline()
			n.left <- time.Until(due)
			select {
			case <-n.other:
			case <-ctx.Done():
				n.late.Store(true)
			}
			return nil, errAway
		}
	}
	return n.memory.Call(ctx, peer, message)
}

// TestAHeadThatDoesNotAnswerHoldsUpNoStop has a worker be stopped with a head that answers nothing any more. Another
// head hears of it at once, and the worker waits no longer than it delivers results.
func TestAHeadThatDoesNotAnswerHoldsUpNoStop(t *testing.T) {
	t.Parallel()
	const otherID = "12D3KooWOther"
	m := newMemory()
	newHead(t, m, headID)
	other := newHead(t, m, otherID)
	n := &deafNetwork{memory: m, deaf: headID, other: make(chan struct{}), left: make(chan time.Duration, 10)}
	n.heard = sync.OnceFunc(func() { close(n.other) })
	o := options(m)
	o.Network, o.Heads = n, append(o.Heads, "/ip4/127.0.0.1/tcp/2/p2p/"+otherID)
	w, _, _ := holding(t, o)
	r := start(t, w, m)
	r.awaitHead()
	require.NoError(t, r.linkOf(otherID).awaitUp(t.Context(), nil))
	require.NoError(t, r.end())
	require.NotEmpty(t, other.goodbyes)
	require.LessOrEqual(t, <-n.left, deliverTime)
	require.False(t, n.late.Load(), "the other head was told after the deaf one had its time")
}

// TestItemsOfManyChunksGoBackInSeveralMessages has more chunks than one message may name.
func TestItemsOfManyChunksGoBackInSeveralMessages(t *testing.T) {
	t.Parallel()
	for n, messages := range map[int]int{0: 1, 1: 1, protocol.MaxNames: 1, 2*protocol.MaxNames + 1: 3} {
		returned := make([]protocol.Returned, n)
		for i := range returned {
			returned[i] = protocol.Returned{ChunkID: fmt.Sprintf("00000000-0000-4000-8000-%012x", i), Indexes: []int{0}}
		}
		all, told := goodbyes(returned), 0
		require.Len(t, all, messages)
		for _, m := range all {
			told += len(m.Returned)
			_, err := protocol.Encode(m, protocol.DialectFutura)
			require.NoError(t, err)
		}
		require.Equal(t, n, told)
	}
}
