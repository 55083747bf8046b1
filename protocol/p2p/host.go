package p2p

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-multiaddr"

	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/ratelog"
)

// MessageHandler takes a message. Published tells those that came over a topic from
// direct ones; from is the author then, whoever relayed it. The message is the
// handler's to keep. ctx ends when the host closes.
type MessageHandler func(ctx context.Context, from PeerID, message []byte, published bool)

// CallHandler takes a message and returns the answer. A nil answer resets the
// stream, and the caller has ErrNoAnswer. ctx ends after Limits.AnswerTimeout, and when
// the host closes.
type CallHandler func(ctx context.Context, from PeerID, message []byte) []byte

// Host is a libp2p host. Its methods may be called from many goroutines.
type Host struct {
	options Options
	limits  Limits
	id      peer.ID
	listen  []multiaddr.Multiaddr
	boot    []peer.AddrInfo
	gate    *gate
	node    *node
	table   *table
	watch   *watch
	gossip  *gossip
	log     *slog.Logger
	clock   clock.Clock
	counts  counts

	onMessage atomic.Pointer[MessageHandler]
	onCall    atomic.Pointer[CallHandler]
	blobs     atomic.Pointer[BlobSource]

	beacon beacon

	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex
	state  state
	work   sync.WaitGroup
}

// state is how far a host is.
type state int

const (
	opened state = iota
	started
	closed
)

// Open makes a host that neither listens nor dials yet: set its handlers, then call
// Start. Close ends it. ctx bounds nothing but Open itself. It returns ErrOptions,
// ErrKey, ErrPeerID or ErrAddress for options that can't be used.
func Open(ctx context.Context, o Options) (*Host, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h := &Host{options: o, log: o.Logger, clock: o.Clock}
	h.beacon = beacon{site: h.site, serve: h.serve}
	key, err := h.prepare()
	if err != nil {
		return nil, err
	}
	h.ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if h.node, err = newNode(key, h.options.Version, h.limits, h.gate); err != nil {
		h.cancel()
		return nil, fmt.Errorf("p2p: %w", err)
	}
	h.id = h.node.ID()
	h.table = newTable(h.limits, h.clock)
	if h.watch, err = newWatch(h); err == nil {
		h.gossip, err = newGossip(h)
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	h.node.Network().Notify(&network.NotifyBundle{ConnectedF: h.recheck})
	h.node.Start()
	return h, nil
}

// prepare checks the options and completes them.
func (h *Host) prepare() (crypto.PrivKey, error) {
	o := &h.options
	var err error
	if h.limits, err = o.Limits.complete(); err != nil {
		return nil, err
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.clock == nil {
		h.clock = clock.Real{}
	}
	orDefault(&o.RedialMin, 500*time.Millisecond)
	orDefault(&o.RedialMax, 30*time.Second)
	if o.RedialMin < 0 || o.RedialMax < o.RedialMin {
		return nil, fmt.Errorf("%w: RedialMin is %v and RedialMax %v: from 0 up", ErrOptions, o.RedialMin, o.RedialMax)
	}
	o.Version = cmp.Or(o.Version, "dev")
	if o.Listen == nil {
		o.Listen = []string{DefaultListen}
	}
	if h.listen, err = parseListen(o.Listen); err != nil {
		return nil, err
	}
	if h.boot, err = parsePeers(o.BootNodes); err != nil {
		return nil, err
	}
	if o.LocalDiscovery != "" && !groupName.MatchString(o.LocalDiscovery) {
		return nil, fmt.Errorf("%w: LocalDiscovery is %.40q: up to 15 letters a to z, digits and hyphens", ErrOptions,
			o.LocalDiscovery)
	}
	if h.gate, err = newGate(o.Allow, o.Deny, ratelog.New(h.log, h.clock)); err != nil {
		return nil, err
	}
	return h.loadKey()
}

func (h *Host) loadKey() (crypto.PrivKey, error) {
	key, err := h.options.Key, error(nil)
	switch {
	case key != nil && h.options.KeyFile != "":
		return nil, fmt.Errorf("%w: both Key and KeyFile are set", ErrOptions)
	case h.options.KeyFile != "":
		key, err = LoadKey(h.options.KeyFile)
	case key == nil:
		key, err = NewKey()
	}
	if err != nil {
		return nil, err
	}
	h.options.Key = nil
	return parseKey(key)
}

// ID returns the host's own id.
func (h *Host) ID() PeerID { return nameOf(h.id) }

// OnMessage sets what takes messages of b7s's protocol and those that are
// published. The host announces the protocol from then on. Messages that came
// before are refused. A later call replaces the handler for later messages.
func (h *Host) OnMessage(f MessageHandler) {
	if h.onMessage.Swap(&f) == nil {
		h.node.SetStreamHandler(ProtocolB7s, h.takeMessage)
	}
}

// OnCall sets what answers calls of Futura's protocol, as OnMessage does for
// messages.
func (h *Host) OnCall(f CallHandler) {
	if h.onCall.Swap(&f) == nil {
		h.node.SetStreamHandler(ProtocolFutura, h.takeCall)
	}
}

// Start makes the host listen, and dial its boot nodes until it is closed. Boot nodes
// that can't be reached are no error, nor is a local network that is not there yet. It
// returns ErrAddress if it can't listen on one of the addresses, for example because
// another process does; the host is of no use then but to be closed.
func (h *Host) Start() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != opened {
		return fmt.Errorf("%w: Start is called once", ErrClosed)
	}
	h.state = started
	for _, address := range h.listen {
		if err := h.node.swarm.AddListenAddr(address); err != nil {
			return fmt.Errorf("%w: can't listen on %s: %w", ErrAddress, address, err)
		}
	}
	if group := h.options.LocalDiscovery; group != "" {
		h.discover(group)
	}
	for _, p := range h.boot {
		h.work.Go(func() { h.keepConnected(p) })
	}
	return nil
}

// Close ends connections, handlers' contexts and everything the host runs, and waits
// for it, handlers included. It may be called more than once, but not by a handler.
func (h *Host) Close() error {
	h.mu.Lock()
	first := h.state != closed
	h.state = closed
	h.mu.Unlock()
	if !first {
		h.work.Wait()
		return nil
	}
	h.cancel()
	h.gossip.close()
	err := h.node.Close()
	h.work.Wait()
	return err
}

// begin reports whether there is something to do still; end tells that it is done.
func (h *Host) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state == closed {
		return false
	}
	h.work.Add(1)
	return true
}

func (h *Host) end() { h.work.Done() }

// Addrs returns the addresses that other hosts can dial, each with /p2p/ and the
// host's id at its end. It is empty before Start.
func (h *Host) Addrs() []string {
	own := multiaddr.StringCast("/p2p/" + h.id.String())
	var addresses []string
	for _, address := range h.node.Addrs() {
		addresses = append(addresses, address.Encapsulate(own).String())
	}
	return addresses
}

// Connect connects to a peer by its address, which ends with /p2p/ and the peer's id,
// and waits until the peer said what it speaks. A peer that is connected already is
// fine. It returns ErrAddress, ErrDenied, or what went wrong.
func (h *Host) Connect(ctx context.Context, address string) (PeerID, error) {
	infos, err := parsePeers([]string{address})
	if err != nil {
		return "", err
	}
	return nameOf(infos[0].ID), h.dial(ctx, infos[0])
}

func (h *Host) dial(ctx context.Context, info peer.AddrInfo) error {
	if h.ctx.Err() != nil {
		return ErrClosed
	}
	if err := h.gate.check(info.ID); err != nil {
		return err
	}
	if info.ID == h.id {
		return fmt.Errorf("%w: %s is this host itself", ErrAddress, info.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, h.limits.DialTimeout)
	defer cancel()
	// The network's own pause after a failure is for those that dial without one.
	h.node.swarm.Backoff().Clear(info.ID)
	if err := h.node.Connect(ctx, info); err != nil {
		return fmt.Errorf("p2p: connect to %s: %w", info.ID, err)
	}
	return nil
}

// Disconnect ends the connections to a peer. Boot nodes are dialled again.
func (h *Host) Disconnect(id PeerID) error {
	p, err := decodePeer(id)
	if err != nil {
		return err
	}
	return h.node.Network().ClosePeer(p)
}

func parseListen(texts []string) (addresses []multiaddr.Multiaddr, err error) {
	for _, text := range texts {
		address, err := multiaddr.NewMultiaddr(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrAddress, text, err)
		}
		if !isTCP(address) {
			return nil, fmt.Errorf("%w: %q: only /tcp/<port>, and /ws after it, are supported", ErrAddress, text)
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}

func isTCP(address multiaddr.Multiaddr) bool {
	protocols := address.Protocols()
	if len(protocols) < 2 || protocols[1].Code != multiaddr.P_TCP {
		return false
	}
	return len(protocols) == 2 || len(protocols) == 3 && protocols[2].Code == multiaddr.P_WS
}

func parsePeers(texts []string) (infos []peer.AddrInfo, err error) {
	for _, text := range texts {
		info, err := peer.AddrInfoFromString(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %w; like /ip4/127.0.0.1/tcp/9527/p2p/12D3KooW...", ErrAddress, text, err)
		}
		if len(info.Addrs) == 0 {
			return nil, fmt.Errorf("%w: %q has no address before /p2p/", ErrAddress, text)
		}
		infos = append(infos, *info)
	}
	return infos, nil
}

// speaks reports whether a peer has announced a protocol.
func (h *Host) speaks(p peer.ID, name protocol.ID) bool {
	known, err := h.node.Peerstore().SupportsProtocols(p, name)
	return err == nil && len(known) > 0
}
