package p2p

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"
	"github.com/multiformats/go-multiaddr"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/clock"
)

// lan is a local network that a test changes, and in which a host is announced.
type lan struct {
	mu     sync.Mutex
	here   site
	broken error // why nothing can be announced

	looks  chan struct{} // one for each time that the host asked where it is
	events chan string   // the addresses of each service that began, "failed" and "closed"
	told   chan string   // what the log says
}

// lanLog is a log that passes on what all people are to see.
type lanLog struct {
	slog.Handler
	told chan string
}

func (lanLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (l lanLog) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l lanLog) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += ": " + a.Value.String()
		return true
	})
	l.told <- text
	return nil
}

// startInLAN starts a host whose local network is the test's.
func startInLAN(t *testing.T, change func(*lan), listen string) (*Host, *lan, *clock.Virtual) {
	t.Helper()
	l := &lan{looks: make(chan struct{}, 1000), events: make(chan string, 1000), told: make(chan string, 1000)}
	l.here = site{multicast: true, addresses: addressesOf("/ip4/10.0.0.1/tcp/1")}
	change(l)
	virtual := clock.NewVirtual(time.Unix(1e9, 0))
	h := open(t, func(o *Options) {
		o.LocalDiscovery, o.Clock, o.Listen = "lan", virtual, []string{listen}
		o.Logger = slog.New(lanLog{slog.DiscardHandler, l.told})
	})
	h.beacon = beacon{site: l.site, serve: l.serve}
	require.NoError(t, h.Start())
	return h, l, virtual
}

func addressesOf(texts ...string) (addresses []multiaddr.Multiaddr) {
	for _, text := range texts {
		addresses = append(addresses, multiaddr.StringCast(text))
	}
	return addresses
}

func (l *lan) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

func (l *lan) site() (site, error) {
	l.looks <- struct{}{}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.here, nil
}

func (l *lan) serve(name string, addresses []multiaddr.Multiaddr, _ mdns.Notifee) (io.Closer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		l.events <- "failed"
		return nil, l.broken
	}
	text := name
	for _, address := range addresses {
		text += " " + address.String()
	}
	l.events <- text
	return l, nil
}

// Close implements io.Closer.
func (l *lan) Close() error {
	l.events <- "closed"
	return nil
}

func next[T any](t *testing.T, from <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(testTime):
		require.FailNow(t, "nothing came")
	}
	return got
}

// TestANetworkThatComesLate starts a host before its network is up, as at boot.
func TestANetworkThatComesLate(t *testing.T) {
	t.Parallel()
	h, l, virtual := startInLAN(t, func(l *lan) { l.here.multicast = false }, DefaultListen)
	require.Contains(t, next(t, l.told), errNoMulticast.Error())
	var waits time.Duration
	for range 5 {
		next(t, l.looks)
		waits = advance(t, virtual)
	}
	require.InEpsilon(t, lookEvery, waits, 0.21)
	l.change(func() { l.here.multicast, l.broken = true, errors.New("no supported interface") })
	advance(t, virtual)
	require.Equal(t, "failed", next(t, l.events))
	require.Contains(t, next(t, l.told), "no supported interface")
	l.change(func() { l.broken = nil })
	for event := "failed"; event == "failed"; event = next(t, l.events) {
		advance(t, virtual)
	}
	require.Contains(t, next(t, l.told), "is announced")
	require.Empty(t, l.told, "each failure is told once")
	require.NoError(t, h.Close())
	require.Equal(t, "closed", next(t, l.events))
	require.Empty(t, l.events)
}

// TestAHostThatIsNeverAnnounced closes one that is about to try again.
func TestAHostThatIsNeverAnnounced(t *testing.T) {
	t.Parallel()
	h, l, _ := startInLAN(t, func(l *lan) { l.broken = errors.New("no supported interface") }, DefaultListen)
	next(t, l.told)
	require.NoError(t, h.Close())
	require.Equal(t, "failed", next(t, l.events))
	require.Empty(t, l.events)
}

// TestAnnouncementsFollowTheHost changes the addresses of a host, and its interfaces.
func TestAnnouncementsFollowTheHost(t *testing.T) {
	t.Parallel()
	h, l, virtual := startInLAN(t, func(*lan) {}, DefaultListen)
	require.Equal(t, "_lan._udp /ip4/10.0.0.1/tcp/1", next(t, l.events))
	look := func() time.Duration {
		next(t, l.looks)
		return advance(t, virtual)
	}
	for range 3 {
		require.Equal(t, lookEvery, look())
	}
	require.Empty(t, l.events, "nothing has changed")
	l.change(func() { l.here.addresses = addressesOf("/ip4/10.0.0.7/tcp/1", "/ip4/10.0.0.7/tcp/2/ws") })
	look()
	require.Equal(t, "closed", next(t, l.events))
	require.Equal(t, "_lan._udp /ip4/10.0.0.7/tcp/1", next(t, l.events))
	l.change(func() { l.here.interfaces = []string{"3 eth0 [10.0.0.7/24]"} })
	look()
	require.Equal(t, "closed", next(t, l.events))
	require.Equal(t, "_lan._udp /ip4/10.0.0.7/tcp/1", next(t, l.events))
	l.change(func() { l.here.multicast = false })
	look()
	require.Equal(t, "closed", next(t, l.events))
	require.Contains(t, next(t, l.told), errNoMulticast.Error())
	require.NoError(t, h.Close())
	require.Empty(t, l.events)
}

// TestWebSocketsAreNotAnnounced warns of a host that none can find.
func TestWebSocketsAreNotAnnounced(t *testing.T) {
	t.Parallel()
	h, l, virtual := startInLAN(t, func(l *lan) {
		l.here.addresses = addressesOf("/ip4/10.0.0.1/tcp/2/ws")
	}, DefaultListen+"/ws")
	require.Contains(t, next(t, l.told), "listen on /tcp/<port> without /ws as well")
	for range 5 {
		next(t, l.looks)
		advance(t, virtual)
	}
	require.Empty(t, l.told, "it is told once")
	require.Empty(t, l.events)
	actual, err := h.site()
	require.NoError(t, err)
	require.Len(t, actual.addresses, 1)
	require.True(t, isWeb(actual.addresses[0]))
}

// TestAnnouncedAddresses has libp2p announce the addresses that it is given.
func TestAnnouncedAddresses(t *testing.T) {
	t.Parallel()
	h, _ := start(t, nil)
	actual, err := h.site()
	require.NoError(t, err)
	require.Equal(t, h.node.Addrs(), actual.addresses)
	moved := addressesOf("/ip4/10.0.0.7/tcp/1")
	got, err := announcedHost{h.node, moved}.Network().InterfaceListenAddresses()
	require.NoError(t, err)
	require.Equal(t, moved, got)
}
