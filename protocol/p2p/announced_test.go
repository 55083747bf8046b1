package p2p

import (
	"testing"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/stretchr/testify/require"
)

// TestStaleAnswerAfterAPush has the answer of a peer that was asked for its protocols come
// after the push of a later one.
func TestStaleAnswerAfterAPush(t *testing.T) {
	t.Parallel()
	head, _ := start(t, nil)
	peers := make(chan Peer, 100)
	head.OnPeer(func(p Peer) { peers <- p })
	late := open(t, nil)
	require.NoError(t, late.Start())
	connect(t, late, head)
	until(t, peers, func(p Peer) bool { return p.Agent != "" }) // it has been asked
	stale, err := head.node.Peerstore().GetProtocols(late.id)
	require.NoError(t, err)
	late.OnMessage(inbox(nil).take) // which is pushed
	until(t, peers, func(p Peer) bool { return p.B7s })

	require.NoError(t, head.node.Peerstore().SetProtocols(late.id, stale...))
	require.False(t, head.speaks(late.id, ProtocolB7s))
	answers, err := head.node.EventBus().Emitter(new(event.EvtPeerIdentificationCompleted))
	require.NoError(t, err)
	require.NoError(t, answers.Emit(event.EvtPeerIdentificationCompleted{Peer: late.id}))
	require.NoError(t, answers.Close())
	until(t, peers, func(p Peer) bool { return p.B7s })
	require.NoError(t, late.node.Network().ClosePeer(head.id))
	until(t, peers, func(p Peer) bool { return !p.Connected })
	head.watch.mu.Lock()
	defer head.watch.mu.Unlock()
	require.Empty(t, head.watch.pushed)
}

// TestPushedProtocolsGo has a peer withdraw a protocol that it pushed.
func TestPushedProtocolsGo(t *testing.T) {
	t.Parallel()
	head, _ := start(t, nil)
	peers := make(chan Peer, 100)
	head.OnPeer(func(p Peer) { peers <- p })
	late := open(t, nil)
	require.NoError(t, late.Start())
	connect(t, late, head)
	late.OnMessage(inbox(nil).take)
	until(t, peers, func(p Peer) bool { return p.B7s })
	late.node.RemoveStreamHandler(protocol.ID(ProtocolB7s))
	until(t, peers, func(p Peer) bool { return p.Connected && !p.B7s })
}
