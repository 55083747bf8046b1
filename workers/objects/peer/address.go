package peer

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/futura-run/futura/internal/trust"
)

const (
	// maxSocketPath is the longest path of a Unix socket on every system, in bytes.
	maxSocketPath = 103
	socketSuffix  = ".socket"
	probeTimeout  = time.Second
)

// splitAddress reads unix:PATH or tcp:HOST:PORT.
func splitAddress(address string) (network, target string, err error) {
	network, target, _ = strings.Cut(address, ":")
	switch network {
	case "unix":
		if target != "" && len(target) <= maxSocketPath {
			return network, target, nil
		}
	case "tcp":
		if _, port, err := net.SplitHostPort(target); err == nil && port != "" {
			return network, target, nil
		}
	}
	return "", "", fmt.Errorf("%w: %.200q: use unix:PATH or tcp:HOST:PORT", ErrBadAddress, address)
}

// leavesMachine reports whether others may see what is sent to an address.
func leavesMachine(network, target string) bool {
	if network == "unix" {
		return false
	}
	host, _, err := net.SplitHostPort(target)
	if err != nil || host == "localhost" {
		return err != nil
	}
	ip := net.ParseIP(host)
	return ip == nil || !ip.IsLoopback()
}

// checkPrivacy returns ErrInsecure for plain text beyond this machine.
func checkPrivacy(network, target string, config *tls.Config, plainText bool) error {
	if config != nil || plainText || !leavesMachine(network, target) {
		return nil
	}
	return fmt.Errorf("%w: %s:%s has no TLS: objects could be read on the way; use a certificate, or allow plain text",
		ErrInsecure, network, target)
}

// ListenUnix makes a socket in a directory that only its user may use. The
// directory is created if it does not exist, and must not be open to others. The
// sockets of processes that are gone are removed from it. The listener's address is
// the path; closing the listener removes it.
func ListenUnix(dir, name string) (net.Listener, error) {
	path := filepath.Join(dir, name+socketSuffix)
	hidden := filepath.Join(dir, "."+name+socketSuffix)
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("%w: the socket's path %q has %d bytes, at most %d: use a shorter directory", ErrBadAddress,
			path, len(path), maxSocketPath)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("objects: %w", err)
	}
	if err := trust.Directory(dir); err != nil {
		return nil, fmt.Errorf("objects: %w", err)
	}
	if err := sweepSockets(dir); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: hidden, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("objects: listen at %s: %w", path, err)
	}
	// It gets its name once it has its mode and answers: a sweep removes others at
	// once.
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(hidden, 0o600); err == nil {
		err = os.Rename(hidden, path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("objects: listen at %s: %w", path, err), l.Close(), os.Remove(hidden))
	}
	return &socket{UnixListener: l, path: path}, nil
}

type socket struct {
	*net.UnixListener
	path string
}

// Addr implements net.Listener.
func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close implements net.Listener.
func (s *socket) Close() error {
	err := s.UnixListener.Close()
	if removed := os.Remove(s.path); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// sweepSockets removes the sockets at which nobody listens.
func sweepSockets(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("objects: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if entry.Type()&fs.ModeSocket == 0 || !strings.HasSuffix(path, socketSuffix) {
			continue
		}
		if info, err := entry.Info(); err != nil || entry.Name()[0] == '.' && time.Since(info.ModTime()) < time.Minute {
			continue // somebody is about to listen
		}
		c, err := net.DialTimeout("unix", path, probeTimeout)
		if err == nil {
			_ = c.Close() // it lives
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path) // another process was faster
		}
	}
	return nil
}
