// Package socket makes Unix sockets that only their user may use, and tells who
// may see what goes over a connection.
package socket

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// MaxPath is the longest path of a Unix socket on every system, in bytes.
const MaxPath = 103

// probeTimeout bounds the wait for a process that may listen.
const probeTimeout = time.Second

// Listen listens at path with mode 0600. The socket is made at hidden, in a place
// that other users can't reach, and gets its name once it has its mode and answers.
// What is at path is replaced. Closing the listener removes the socket, unless
// another one is there by then.
func Listen(hidden, path string) (net.Listener, error) {
	inner, err := net.ListenUnix("unix", &net.UnixAddr{Name: hidden, Net: "unix"})
	if err != nil {
		return nil, err
	}
	inner.SetUnlinkOnClose(false)
	err = os.Chmod(hidden, 0o600)
	if err == nil {
		err = os.Rename(hidden, path)
	}
	var made fs.FileInfo
	if err == nil {
		made, err = os.Lstat(path)
	}
	if err != nil {
		_ = os.Remove(hidden)
		return nil, errors.Join(err, inner.Close())
	}
	return &listener{UnixListener: inner, path: path, made: made}, nil
}

// listener removes its socket when it is closed.
type listener struct {
	*net.UnixListener
	path  string
	made  fs.FileInfo
	close sync.Once
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close implements net.Listener.
func (l *listener) Close() error {
	l.close.Do(func() {
		if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.made) {
			_ = os.Remove(l.path)
		}
	})
	return l.UnixListener.Close()
}

// Answers reports whether a process listens at the socket at path. An error says
// that this can't be found out.
func Answers(path string) (bool, error) {
	conn, err := net.DialTimeout("unix", path, probeTimeout)
	if err == nil {
		return true, conn.Close()
	}
	if IsRefused(err) {
		return false, nil
	}
	return false, err
}

// IsRefused reports whether a dial failed because nothing listens.
func IsRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// IsCut reports whether a connection ended without a word from the other side: it was
// reset, or closed before it answered.
func IsCut(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}

// LeavesMachine reports whether what is sent to an address may be seen on a
// network. Names other than localhost may stand for anything.
func LeavesMachine(network, target string) bool {
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
