package p2p

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/zeroconf/v2"
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

// discover announces the host in the local network if it listens, and dials others of its
// group, until the host closes.
func (h *Host) discover(group string) {
	const dials = 4
	d := &discovery{host: h, slot: make(chan struct{}, dials), dialing: map[peer.ID]bool{}}
	name := "_" + group + "._udp"
	if len(h.listen) > 0 {
		h.work.Go(func() { d.announce(h.ctx, name) })
	}
	h.work.Go(func() { d.browse(h.ctx, name) })
}

// browseRound is how long one search lasts: each names a peer once, which may have gone and
// come back since.
const browseRound = 20 * time.Second

// browse looks for others, again and again until ctx ends.
func (d *discovery) browse(ctx context.Context, name string) {
	for ctx.Err() == nil {
		round, cancel := context.WithTimeout(ctx, browseRound)
		found, ended := make(chan *zeroconf.ServiceEntry), make(chan struct{})
		go func() {
			defer close(ended)
			if err := zeroconf.Browse(round, name, "local", found); err != nil && ctx.Err() == nil {
				d.host.log.Debug("can't look for peers in the local network", "error", err)
			}
		}()
		d.take(found, ended)
		<-round.Done()
		cancel()
	}
}

// take takes what a search finds, until that has ended.
func (d *discovery) take(found <-chan *zeroconf.ServiceEntry, ended <-chan struct{}) {
	for {
		select {
		case entry, open := <-found:
			if !open {
				<-ended
				return
			}
			for _, info := range peersOf(entry.Text) {
				d.HandlePeerFound(info)
			}
		case <-ended:
			return
		}
	}
}

// mostAnnounced bounds the addresses that are read of one announcement.
const mostAnnounced = 64

// peersOf are the peers in the texts of an announcement, which anyone may have made.
func peersOf(texts []string) []peer.AddrInfo {
	var addresses []multiaddr.Multiaddr
	for _, text := range texts[:min(len(texts), mostAnnounced)] {
		if text, found := strings.CutPrefix(text, "dnsaddr="); found {
			if address, err := multiaddr.NewMultiaddr(text); err == nil {
				addresses = append(addresses, address)
			}
		}
	}
	infos, err := peer.AddrInfosFromP2pAddrs(addresses...)
	if err != nil {
		return nil
	}
	return infos
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
