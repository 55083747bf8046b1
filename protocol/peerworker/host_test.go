package peerworker

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
)

// TestOrdersOverLibp2p has a head on a real host on loopback.
func TestOrdersOverLibp2p(t *testing.T) {
	t.Parallel()
	head, err := p2p.Open(t.Context(), p2p.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, head.Close()) })
	h := newHead(t, newMemory(), string(head.ID()))
	met := make(chan p2p.PeerID, 10)
	head.OnCall(func(ctx context.Context, from p2p.PeerID, message []byte) []byte {
		m, err := protocol.Decode(message)
		if err != nil {
			return nil
		}
		if _, hello := m.(*protocol.Hello); hello {
			met <- from
		}
		answer, err := protocol.Encode(h.answer(ctx, m), protocol.DialectFutura)
		if err != nil {
			return nil
		}
		return answer
	})
	require.NoError(t, head.Start())
	w, err := New(Options{Heads: head.Addrs(), Slots: 2, KeyFile: t.TempDir() + "/key"})
	require.NoError(t, err)
	require.NoError(t, w.Register("double", functions["double"]))
	r := start(t, w, nil)
	from := <-met
	require.Equal(t, w.ID(), string(from))
	order := goOrder("double", "a", "b", "c")
	data, err := protocol.Encode(order, protocol.DialectFutura)
	require.NoError(t, err)
	answer, err := head.Call(t.Context(), from, data)
	require.NoError(t, err)
	ack, err := protocol.Decode(answer)
	require.NoError(t, err)
	require.Equal(t, protocol.CodeAccepted, ack.(*protocol.Ack).Code)
	require.Equal(t, "cc", string(h.all(order.ChunkID, 3)[2].Value))
	r.idle()
	// The connection breaks, and the worker comes back by itself.
	require.NoError(t, head.Disconnect(from))
	require.Equal(t, from, <-met)
}
