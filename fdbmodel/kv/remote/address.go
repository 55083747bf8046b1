package remote

import (
	"fmt"
	"net"
	"strings"

	"github.com/futura-run/futura/internal/socket"
)

// Address is where a server listens.
type Address struct {
	// Network is unix or tcp.
	Network string
	// Target is the path of the socket, or host:port.
	Target string
}

// ParseAddress reads unix:PATH or tcp:HOST:PORT. It returns ErrBadAddress.
func ParseAddress(text string) (Address, error) {
	network, target, _ := strings.Cut(text, ":")
	a := Address{Network: network, Target: target}
	if err := a.check(); err != nil {
		return Address{}, err
	}
	return a, nil
}

// String returns the address as ParseAddress reads it.
func (a Address) String() string { return a.Network + ":" + a.Target }

func (a Address) check() error {
	switch a.Network {
	case "unix":
		return checkSocketPath(a.Target)
	case "tcp":
		if _, port, err := net.SplitHostPort(a.Target); err != nil || port == "" {
			return fmt.Errorf("%w: %q: use tcp:HOST:PORT", ErrBadAddress, a)
		}
		return nil
	}
	return fmt.Errorf("%w: %q: use unix:PATH or tcp:HOST:PORT", ErrBadAddress, a)
}

// leavesMachine reports whether what is sent to the address may be seen on a
// network. Names other than localhost may stand for anything.
func (a Address) leavesMachine() bool { return socket.LeavesMachine(a.Network, a.Target) }
