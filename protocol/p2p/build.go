package p2p

import (
	"fmt"
	"io"
	"math"
	"net/netip"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	basichost "github.com/libp2p/go-libp2p/p2p/host/basic"
	"github.com/libp2p/go-libp2p/p2p/host/eventbus"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	tls "github.com/libp2p/go-libp2p/p2p/security/tls"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/libp2p/go-libp2p/p2p/transport/websocket"
	"github.com/libp2p/go-libp2p/x/rate"
)

// window is the receive buffer that each stream may fill from its beginning, and
// largestWindow what it may grow to on a fast and long way.
const (
	window        = 256 << 10
	largestWindow = 4 << 20
)

// node is a libp2p host and its network.
type node struct {
	*basichost.BasicHost
	swarm *swarm.Swarm
}

// newNode assembles a host of the parts that are used alone: libp2p's own
// constructor links QUIC, WebRTC and all their dependencies.
func newNode(key crypto.PrivKey, version string, l Limits, g *gate) (_ *node, err error) {
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return nil, err
	}
	book, err := pstoremem.NewPeerstore()
	if err != nil {
		return nil, err
	}
	resources, err := newResources(l)
	if err != nil {
		return nil, err
	}
	manager, err := connmgr.NewConnManager(max(1, l.Peers*9/10), max(2, l.Peers), connmgr.WithGracePeriod(10*time.Second))
	if err != nil {
		return nil, err
	}
	if err := book.AddPrivKey(id, key); err != nil {
		return nil, err
	}
	if err := book.AddPubKey(id, key.GetPublic()); err != nil {
		return nil, err
	}
	bus := eventbus.NewBus()
	net, err := swarm.NewSwarm(id, book, bus, swarm.WithConnectionGater(g), swarm.WithResourceManager(resources),
		swarm.WithDialTimeout(l.DialTimeout), swarm.WithDialTimeoutLocal(l.DialTimeout))
	if err != nil {
		return nil, err
	}
	if err := addTransports(net, key, l, resources, g); err != nil {
		return nil, err
	}
	host, err := basichost.NewHost(net, &basichost.HostOpts{
		EventBus: bus, ConnManager: manager, UserAgent: "futura/" + version, EnablePing: true,
		NegotiationTimeout: l.MessageTimeout,
	})
	if err != nil {
		return nil, err
	}
	return &node{host, net}, nil
}

func addTransports(net *swarm.Swarm, key crypto.PrivKey, l Limits, resources network.ResourceManager, g *gate) error {
	config := *yamux.DefaultTransport
	config.MaxStreamWindowSize = largestWindow
	config.MaxIncomingStreams = uint32(min(l.PeerStreams, math.MaxUint32))
	config.LogOutput = io.Discard
	// A connection on which nothing comes back is dead after this and ten seconds.
	config.KeepAliveInterval = 15 * time.Second
	muxers := []upgrader.StreamMuxer{{ID: yamux.ID, Muxer: &config}}
	encrypted, err := tls.New(tls.ID, key, muxers)
	if err != nil {
		return err
	}
	noisy, err := noise.New(noise.ID, key, muxers)
	if err != nil {
		return err
	}
	up, err := upgrader.New([]sec.SecureTransport{encrypted, noisy}, muxers, nil, resources, g,
		upgrader.WithAcceptTimeout(l.DialTimeout))
	if err != nil {
		return err
	}
	// A port that is shared with a second process by accident would take half of this one's peers.
	direct, err := tcp.NewTCPTransport(up, resources, nil, tcp.DisableReuseport(),
		tcp.WithConnectionTimeout(l.DialTimeout))
	if err != nil {
		return err
	}
	web, err := websocket.New(up, resources, nil, websocket.WithHandshakeTimeout(l.DialTimeout))
	if err != nil {
		return err
	}
	for _, t := range []transport.Transport{direct, web} {
		if err := net.AddTransport(t); err != nil {
			return err
		}
	}
	return nil
}

// newResources returns what counts streams, connections and their buffers.
func newResources(l Limits) (network.ResourceManager, error) {
	conns := l.Peers + l.Peers/4
	waiting := max(16, l.Peers/8) // connections whose peer is not known yet
	limit := rcmgr.LimitVal64(l.Buffers)
	limits := rcmgr.PartialLimitConfig{
		System: rcmgr.ResourceLimits{
			Streams: rcmgr.LimitVal(2 * l.Streams), StreamsInbound: rcmgr.LimitVal(l.Streams),
			StreamsOutbound: rcmgr.LimitVal(l.Streams), Conns: rcmgr.LimitVal(conns), ConnsInbound: rcmgr.LimitVal(conns),
			ConnsOutbound: rcmgr.LimitVal(conns), FD: rcmgr.LimitVal(conns + waiting), Memory: limit,
		},
		Transient: rcmgr.ResourceLimits{
			Streams: rcmgr.LimitVal(l.Streams), StreamsInbound: rcmgr.LimitVal(l.Streams),
			StreamsOutbound: rcmgr.LimitVal(l.Streams), Conns: rcmgr.LimitVal(waiting), ConnsInbound: rcmgr.LimitVal(waiting),
			ConnsOutbound: rcmgr.LimitVal(waiting), FD: rcmgr.LimitVal(waiting), Memory: limit,
		},
		PeerDefault: rcmgr.ResourceLimits{
			Streams: rcmgr.LimitVal(2 * l.PeerStreams), StreamsInbound: rcmgr.LimitVal(l.PeerStreams),
			StreamsOutbound: rcmgr.LimitVal(l.PeerStreams), Conns: rcmgr.LimitVal(l.PeerConns),
			ConnsInbound: rcmgr.LimitVal(l.PeerConns), ConnsOutbound: rcmgr.LimitVal(l.PeerConns),
			FD: rcmgr.LimitVal(l.PeerConns), Memory: rcmgr.LimitVal64(l.PeerBuffers),
		},
	}
	manager, err := rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(limits.Build(rcmgr.InfiniteLimits)),
		rcmgr.WithMetricsDisabled(), rcmgr.WithConnRateLimiters(newArrivals()),
		rcmgr.WithLimitPerSubnet([]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: conns}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: conns}}))
	if err != nil {
		return nil, fmt.Errorf("p2p: limits: %w", err)
	}
	return manager, nil
}

// newArrivals bounds new connections of an address: a handshake costs far more than
// it does the one that asks for it. Many workers may share an address, and all of
// them come back at once after their head did.
func newArrivals() *rate.Limiter {
	limit := rate.Limit{RPS: 20, Burst: 256}
	return &rate.Limiter{
		NetworkPrefixLimits: []rate.PrefixLimit{
			{Prefix: netip.MustParsePrefix("127.0.0.0/8")}, {Prefix: netip.MustParsePrefix("::1/128")},
		},
		SubnetRateLimiter: rate.SubnetLimiter{
			IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: 32, Limit: limit}},
			IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: 56, Limit: limit}},
			GracePeriod:      time.Minute,
		},
	}
}
