package p2p

import (
	"fmt"
	"regexp"
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// discovery dials the peers that it finds in the local network.
type discovery struct {
	host *Host
	slot chan struct{} // one for each dial at a time

	mu      sync.Mutex
	dialing map[peer.ID]bool
}

var groupName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?$`)

// discover announces the host in the local network, and dials others of its group,
// until stop is called.
func (h *Host) discover(group string) (stop func(), err error) {
	const dials = 4
	d := &discovery{host: h, slot: make(chan struct{}, dials), dialing: map[peer.ID]bool{}}
	service := mdns.NewMdnsService(h.node, "_"+group+"._udp", d)
	if err := service.Start(); err != nil {
		return nil, fmt.Errorf("%w: local discovery: %w", ErrAddress, err)
	}
	return func() { _ = service.Close() }, nil
}

// HandlePeerFound is called for each announcement. Anyone in the local network can
// send any, so what is too much at once is left for the next.
func (d *discovery) HandlePeerFound(info peer.AddrInfo) {
	h := d.host
	info.Addrs = multiaddr.FilterAddrs(info.Addrs, isLocal)
	connected, _ := h.watch.connected(info.ID)
	if connected || len(info.Addrs) == 0 || info.ID == h.id || !h.gate.admits(info.ID) || !d.begin(info.ID) {
		return
	}
	if !h.begin() {
		d.end(info.ID)
		return
	}
	go func() {
		defer h.end()
		defer d.end(info.ID)
		if err := h.dial(h.ctx, info); err != nil {
			h.log.Debug("can't reach a peer that was discovered", "peer", info.ID.String(), "error", err)
		}
	}()
}

func (d *discovery) begin(p peer.ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dialing[p] {
		return false
	}
	select {
	case d.slot <- struct{}{}:
		d.dialing[p] = true
		return true
	default:
		return false
	}
}

func (d *discovery) end(p peer.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.dialing, p)
	<-d.slot
}

// isLocal keeps announcements from sending a host to addresses elsewhere.
func isLocal(address multiaddr.Multiaddr) bool {
	return isTCP(address) && (manet.IsPrivateAddr(address) || manet.IsIPLoopback(address) ||
		manet.IsIP6LinkLocal(address))
}
