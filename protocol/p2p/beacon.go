package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/discovery/mdns"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/futura-run/futura/internal/clock"
)

const (
	// lookEvery is how often a host looks whether it is elsewhere now. libp2p tells of that too,
	// but up to a minute late.
	lookEvery = 10 * time.Second
	// firstRetry is how long it waits after a failure, and twice as long each time up to lookEvery.
	firstRetry = time.Second
)

var (
	errNoMulticast = errors.New("no network interface is up that carries multicast; the host looks for one " +
		"again and again")
	errWebSockets = errors.New("multicast DNS leaves out addresses with /ws, and the host listens on no others: " +
		"listen on /tcp/<port> without /ws as well, or give others its address")
)

// site is where a host can be announced.
type site struct {
	addresses []multiaddr.Multiaddr
	multicast bool // an interface carries it
	// interfaces are those with an address that others can use. They are joined when
	// announcing begins, so it begins again when they change.
	interfaces []string
}

// beacon is what announces a host.
type beacon struct {
	site  func() (site, error)
	serve func(name string, addresses []multiaddr.Multiaddr, found mdns.Notifee) (io.Closer, error)
}

// announcer keeps a host announced, wherever it is.
type announcer struct {
	*discovery
	name    string
	service io.Closer // nil while nothing is announced
	at      string    // where service announces the host
	warned  string    // the last failure that was told, empty once the host is announced
}

// announce announces the host until ctx ends.
func (d *discovery) announce(ctx context.Context, name string) {
	a := &announcer{discovery: d, name: name}
	defer a.stop()
	for failures := 0; ; {
		wait := lookEvery
		if err := a.look(); err != nil {
			failures++
			wait = backoff(failures, firstRetry, lookEvery, rand.Float64())
			a.tell(err)
		} else {
			failures = 0
			a.tellAnnounced()
		}
		if clock.Sleep(ctx, d.host.clock, wait) != nil {
			return
		}
	}
}

// look begins to announce the host where it is now, unless that goes on already.
func (a *announcer) look() error {
	now, err := a.host.beacon.site()
	addresses := slices.DeleteFunc(slices.Clone(now.addresses), isWeb)
	switch {
	case err != nil:
	case len(addresses) == 0:
		err = errWebSockets
	case !now.multicast:
		err = errNoMulticast
	}
	if err != nil {
		a.stop()
		return err
	}
	at := keyOf(addresses, now.interfaces)
	if a.service != nil && a.at == at {
		return nil
	}
	a.stop()
	a.at = at
	a.service, err = a.host.beacon.serve(a.name, addresses, a.discovery)
	return err
}

func (a *announcer) stop() {
	if a.service != nil {
		_ = a.service.Close()
		a.service = nil
	}
}

// tell warns of a failure once.
func (a *announcer) tell(err error) {
	if text := err.Error(); text != a.warned {
		a.warned = text
		a.host.log.Warn("can't announce this host in the local network", "error", err)
	}
}

func (a *announcer) tellAnnounced() {
	if a.warned != "" {
		a.warned = ""
		a.host.log.Info("this host is announced in the local network now")
	}
}

// isWeb reports whether libp2p's multicast DNS drops an address that a host can listen on.
func isWeb(address multiaddr.Multiaddr) bool {
	_, err := address.ValueForProtocol(multiaddr.P_WS)
	return err == nil
}

func keyOf(addresses []multiaddr.Multiaddr, interfaces []string) string {
	var texts []string
	for _, address := range addresses {
		texts = append(texts, address.String())
	}
	slices.Sort(texts)
	return strings.Join(append(texts, interfaces...), "\n")
}

// site returns where the host is now. libp2p's own answer may be a minute old.
func (h *Host) site() (s site, err error) {
	if s.addresses, err = manet.ResolveUnspecifiedAddresses(h.node.swarm.ListenAddresses(), nil); err != nil {
		return s, err
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return s, err
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagMulticast == 0 {
			continue
		}
		s.multicast = true
		addresses, err := i.Addrs()
		if err != nil {
			continue // it has gone
		}
		addresses = slices.DeleteFunc(addresses, isLinkLocal6)
		if len(addresses) > 0 {
			s.interfaces = append(s.interfaces, fmt.Sprint(i.Index, " ", i.Name, " ", addresses))
		}
	}
	return s, nil
}

// isLinkLocal6 reports whether an address is one that is never announced. The interfaces of
// containers have only those, and come and go.
func isLinkLocal6(address net.Addr) bool {
	n, ok := address.(*net.IPNet)
	return ok && n.IP.To4() == nil && n.IP.IsLinkLocalUnicast()
}

// serve announces addresses by multicast DNS until it is closed.
func (h *Host) serve(name string, addresses []multiaddr.Multiaddr, found mdns.Notifee) (io.Closer, error) {
	service := mdns.NewMdnsService(announcedHost{h.node, addresses}, name, found)
	if err := service.Start(); err != nil {
		_ = service.Close()
		return nil, err
	}
	return service, nil
}

// announcedHost is a host at given addresses, where libp2p would announce those of up to a
// minute ago.
type announcedHost struct {
	host.Host
	addresses []multiaddr.Multiaddr
}

// Network implements host.Host.
func (h announcedHost) Network() network.Network {
	return announcedNetwork{h.Host.Network(), h.addresses}
}

type announcedNetwork struct {
	network.Network
	addresses []multiaddr.Multiaddr
}

// InterfaceListenAddresses implements network.Network.
func (n announcedNetwork) InterfaceListenAddresses() ([]multiaddr.Multiaddr, error) {
	return n.addresses, nil
}
