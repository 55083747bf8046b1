package p2p

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"

	"github.com/futura-run/futura/internal/signal"
)

// Peer is what a host knows about a peer.
type Peer struct {
	ID        PeerID
	Connected bool
	// Session counts the peer's connections since the host was opened, one beside
	// another not included: it differs if the peer was disconnected in between.
	Session uint64
	// B7s and Futura tell the protocols that the peer has announced. Soon after it
	// connected, or while it starts, they may be missing.
	B7s, Futura bool
	// Agent is what the peer says it is, such as futura/v1.2.3, in up to 64 letters of
	// ASCII. It proves nothing.
	Agent string
}

// PeerHandler is told how a peer stands.
type PeerHandler func(Peer)

// watch keeps what changes with peers.
type watch struct {
	host     *Host
	events   event.Subscription
	mu       sync.Mutex
	sessions map[peer.ID]uint64 // of peers that are connected
	pushed   map[peer.ID][]protocol.ID
	last     uint64
	changed  chan struct{} // closed at the next change
	pending  map[peer.ID]uint64
	told     map[peer.ID]bool // as connected, last
	handler  PeerHandler
	wake     chan struct{}
}

func newWatch(h *Host) (*watch, error) {
	events, err := h.node.EventBus().Subscribe([]any{
		new(event.EvtPeerConnectednessChanged), new(event.EvtPeerIdentificationCompleted),
		new(event.EvtPeerProtocolsUpdated),
	}, eventbus.BufSize(256))
	if err != nil {
		return nil, fmt.Errorf("p2p: events: %w", err)
	}
	w := &watch{
		host: h, events: events, sessions: map[peer.ID]uint64{}, pushed: map[peer.ID][]protocol.ID{},
		changed: make(chan struct{}), pending: map[peer.ID]uint64{}, told: map[peer.ID]bool{}, wake: make(chan struct{}, 1),
	}
	h.work.Go(w.listen)
	h.work.Go(w.tell)
	return w, nil
}

// OnPeer sets what is told about peers: those that are connected already, and each
// that connects, disconnects, or announces a protocol from then on. It is called by
// one goroutine. Changes of a peer that come faster than it returns are told as one,
// so nothing piles up and the last state is always told.
func (h *Host) OnPeer(f PeerHandler) {
	w := h.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handler = f
	for p, session := range w.sessions {
		w.pending[p] = session
	}
	w.poke()
}

// Peers returns the connected peers, by their ids.
func (h *Host) Peers() []Peer {
	var peers []Peer
	h.watch.mu.Lock()
	for p, session := range h.watch.sessions {
		peers = append(peers, h.describe(p, session, true))
	}
	h.watch.mu.Unlock()
	slices.SortFunc(peers, func(a, b Peer) int { return cmp.Compare(a.ID, b.ID) })
	return peers
}

// Connected tells whether a peer is connected. It is false for what is no peer's id.
func (h *Host) Connected(id PeerID) bool {
	p, err := decodePeer(id)
	if err != nil {
		return false
	}
	yes, _ := h.watch.connected(p)
	return yes
}

// Speaks tells which protocols a connected peer has announced so far.
func (h *Host) Speaks(id PeerID) (b7s, futura bool) {
	p, err := decodePeer(id)
	if err != nil || h.node.Network().Connectedness(p) != network.Connected {
		return false, false
	}
	return h.speaks(p, ProtocolB7s), h.speaks(p, ProtocolFutura)
}

func (h *Host) describe(p peer.ID, session uint64, connected bool) Peer {
	known := Peer{ID: nameOf(p), Connected: connected, Session: session}
	if connected {
		known.B7s, known.Futura = h.speaks(p, ProtocolB7s), h.speaks(p, ProtocolFutura)
	}
	if agent, err := h.node.Peerstore().Get(p, "AgentVersion"); err == nil {
		known.Agent, _ = agent.(string)
		known.Agent = printable(known.Agent)
	}
	return known
}

// printable shortens what a peer says of itself, and takes out what a terminal obeys.
func printable(text string) string {
	const longest = 64
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	return text[:min(len(text), longest)]
}

// next returns what is closed at the next change of any peer.
func (w *watch) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// connected reports whether a peer is, and what is closed at the next change.
func (w *watch) connected(p peer.ID) (yes bool, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, yes = w.sessions[p]
	return yes, w.changed
}

// listen takes libp2p's events. It holds none of them up: the network waits for it.
func (w *watch) listen() {
	context.AfterFunc(w.host.ctx, func() { _ = w.events.Close() })
	for e := range w.events.Out() {
		switch e := e.(type) {
		case event.EvtPeerConnectednessChanged:
			w.note(e.Peer, e.Connectedness == network.Connected, e.Connectedness != network.Connected)
		case event.EvtPeerIdentificationCompleted:
			w.restore(e.Peer)
			w.note(e.Peer, false, false)
		case event.EvtPeerProtocolsUpdated:
			w.announced(e)
			w.note(e.Peer, false, false)
		}
	}
}

func (w *watch) note(p peer.ID, came, left bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	session, known := w.sessions[p]
	switch {
	case came && !known:
		w.last++
		session = w.last
		w.sessions[p] = session
	case left:
		delete(w.sessions, p)
		delete(w.pushed, p)
		if !w.told[p] {
			delete(w.pending, p) // so that peers that come and go don't pile up
			session = 0
		}
	}
	close(w.changed)
	w.changed = make(chan struct{})
	if session != 0 && w.handler != nil {
		w.pending[p] = session
		w.poke()
	}
}

func (w *watch) poke() {
	signal.Send(w.wake)
}

// tell calls the handler.
func (w *watch) tell() {
	for {
		select {
		case <-w.host.ctx.Done():
			return
		case <-w.wake:
		}
		for w.host.ctx.Err() == nil && w.tellOne() {
		}
	}
}

func (w *watch) tellOne() bool {
	w.mu.Lock()
	handler := w.handler
	for p, session := range w.pending {
		delete(w.pending, p)
		current, connected := w.sessions[p]
		if connected {
			session = current
			w.told[p] = true
		} else {
			delete(w.told, p)
		}
		w.mu.Unlock()
		handler(w.host.describe(p, session, connected))
		return true
	}
	w.mu.Unlock()
	return false
}
