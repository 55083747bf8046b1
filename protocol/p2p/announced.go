package p2p

import (
	"slices"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// What a peer says when it is asked, and what it pushes when that changes, come on streams
// of their own. So an answer from before a change can come after the push, and libp2p
// would take the peer's protocols from the answer for good. Nodes of b7s push the one
// protocol that matters right after they have connected.

// announced takes the changes that a connected peer has pushed.
func (w *watch) announced(e event.EvtPeerProtocolsUpdated) {
	w.mu.Lock()
	if _, connected := w.sessions[e.Peer]; connected {
		names := slices.DeleteFunc(w.pushed[e.Peer], func(name protocol.ID) bool { return slices.Contains(e.Removed, name) })
		for _, name := range []protocol.ID{ProtocolB7s, ProtocolFutura, ProtocolBlob} {
			if slices.Contains(e.Added, name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		w.pushed[e.Peer] = names
	}
	w.mu.Unlock()
	w.restore(e.Peer)
}

// restore has the peer speak what it has pushed.
func (w *watch) restore(p peer.ID) {
	w.mu.Lock()
	names := w.pushed[p]
	w.mu.Unlock()
	if len(names) == 0 {
		return
	}
	if err := w.host.node.Peerstore().AddProtocols(p, names...); err != nil {
		w.host.log.Debug("a peer's protocols can't be kept", "peer", p.String(), "error", err)
	}
}
