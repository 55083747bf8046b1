package p2p

import (
	"fmt"

	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"

	"github.com/futura-run/futura/internal/ratelog"
)

// gate says which peers may connect.
type gate struct {
	log   *ratelog.Log
	allow map[peer.ID]bool // nil for everyone
	deny  map[peer.ID]bool
}

func newGate(allow, deny []PeerID, log *ratelog.Log) (*gate, error) {
	g := &gate{log: log}
	var err error
	if allow != nil {
		g.allow, err = idSet(allow)
	}
	if err == nil {
		g.deny, err = idSet(deny)
	}
	return g, err
}

func idSet(names []PeerID) (map[peer.ID]bool, error) {
	set := make(map[peer.ID]bool, len(names))
	for _, name := range names {
		id, err := decodePeer(name)
		if err != nil {
			return nil, err
		}
		set[id] = true
	}
	return set, nil
}

func (g *gate) admits(p peer.ID) bool { return !g.deny[p] && (g.allow == nil || g.allow[p]) }

func (g *gate) check(p peer.ID) error {
	if !g.admits(p) {
		return fmt.Errorf("%w: %s: see Options.Allow and Options.Deny", ErrDenied, p)
	}
	return nil
}

// InterceptPeerDial and the others implement libp2p's ConnectionGater.
func (g *gate) InterceptPeerDial(p peer.ID) bool { return g.admits(p) }

func (g *gate) InterceptAddrDial(p peer.ID, _ multiaddr.Multiaddr) bool { return g.admits(p) }

func (g *gate) InterceptAccept(network.ConnMultiaddrs) bool { return true }

func (g *gate) InterceptSecured(_ network.Direction, p peer.ID, c network.ConnMultiaddrs) bool {
	if !g.admits(p) {
		g.log.Warn("a peer that may not connect was refused", "peer", p, "from", c.RemoteMultiaddr())
		return false
	}
	return true
}

func (g *gate) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }
