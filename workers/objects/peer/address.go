package peer

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/futura-run/futura/internal/socket"
	"github.com/futura-run/futura/internal/trust"
)

const socketSuffix = ".socket"

// splitAddress reads unix:PATH or tcp:HOST:PORT.
func splitAddress(address string) (network, target string, err error) {
	network, target, _ = strings.Cut(address, ":")
	switch network {
	case "unix":
		if target != "" && len(target) <= socket.MaxPath {
			return network, target, nil
		}
	case "tcp":
		if _, port, err := net.SplitHostPort(target); err == nil && port != "" {
			return network, target, nil
		}
	}
	return "", "", fmt.Errorf("%w: %.200q: use unix:PATH or tcp:HOST:PORT", ErrBadAddress, address)
}

// checkPrivacy returns ErrInsecure for plain text beyond this machine.
func checkPrivacy(network, target string, config *tls.Config, plainText bool) error {
	if config != nil || plainText || !socket.LeavesMachine(network, target) {
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
	if len(path) > socket.MaxPath {
		return nil, fmt.Errorf("%w: the socket's path %q has %d bytes, at most %d: use a shorter directory", ErrBadAddress,
			path, len(path), socket.MaxPath)
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
	// A sweep removes what has its name and does not answer.
	l, err := socket.Listen(hidden, path)
	if err != nil {
		return nil, fmt.Errorf("objects: listen at %s: %w", path, err)
	}
	return l, nil
}

// sweepSockets removes the sockets that do not answer.
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
			continue // its process is about to listen
		}
		if answers, err := socket.Answers(path); err == nil && !answers {
			_ = os.Remove(path) // another process was faster
		}
	}
	return nil
}
