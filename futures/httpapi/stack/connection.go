package stack

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// UnauthenticatedBytes is the most that the kernel holds of the answers to one connection of Serve that has shown
	// no valid token. Limits.Connections times that is what it holds for all of them.
	UnauthenticatedBytes = 32 << 10
	// unauthenticatedBuffer is the send buffer that keeps this bound: Linux takes twice as much, and what it sends as one
	// piece in addition.
	unauthenticatedBuffer = UnauthenticatedBytes / 4
	// authenticatedBuffer is that of others, where the kernel does not choose it.
	authenticatedBuffer = 1 << 20
	// unauthenticatedPiece is how much such a connection writes at a time.
	unauthenticatedPiece = 4 << 10
	// unauthenticatedRequests is how many requests without a token are answered on such a connection.
	unauthenticatedRequests = 32
)

// sockets is a listener whose connections are small until they have shown a token.
type sockets struct {
	net.Listener
	slack time.Duration
}

// Accept implements net.Listener.
func (s sockets) Accept() (net.Conn, error) {
	below, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	shrink(below, s.slack)
	return &connection{Conn: below, pace: pace{slack: s.slack}}, nil
}

// connection is one that was accepted. Until it has shown a token its peer has one slack for all answers: what it took
// earns time back, and the next request does not.
type connection struct {
	net.Conn
	authenticated atomic.Bool
	writing       atomic.Bool
	// answered counts requests without a token, of which there is one at a time.
	answered int
	// pace belongs to Write, which has one caller at a time.
	pace pace

	mu    sync.Mutex
	asked time.Time // the deadline of writes that the server wants
}

// socketOf returns the connection below another, nil if Serve has not accepted it.
func socketOf(c net.Conn) *connection {
	for {
		switch wrapped := c.(type) {
		case *connection:
			return wrapped
		case interface{ NetConn() net.Conn }:
			c = wrapped.NetConn()
		default:
			return nil
		}
	}
}

// authenticate gives the connection what it needs for large answers.
func (c *connection) authenticate() {
	if !c.authenticated.Load() {
		grow(c.Conn)
		c.authenticated.Store(true)
	}
}

// Write implements net.Conn.
func (c *connection) Write(b []byte) (n int, err error) {
	if c.authenticated.Load() {
		return c.Conn.Write(b)
	}
	c.writing.Store(true)
	for first := true; err == nil && (first || n < len(b)); first = false {
		start, wrote := time.Now(), 0
		_ = c.Conn.SetWriteDeadline(c.deadline(start)) // some connections have no deadlines
		wrote, err = c.Conn.Write(b[n:min(len(b), n+unauthenticatedPiece)])
		c.pace.did(wrote, start)
		n += wrote
	}
	c.writing.Store(errors.Is(err, os.ErrDeadlineExceeded)) // what such a peer has not taken, it will not take
	return n, err
}

// deadline is the earlier one of the server's and the peer's.
func (c *connection) deadline(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if own := c.pace.deadline(now); c.asked.IsZero() || own.Before(c.asked) {
		return own
	}
	return c.asked
}

// SetWriteDeadline implements net.Conn.
func (c *connection) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = t
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *connection) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Close implements net.Conn. A peer that does not take what is being written loses it, so that the kernel does not
// hold it on.
func (c *connection) Close() error {
	if below, ok := c.Conn.(interface{ SetLinger(sec int) error }); ok && c.writing.Load() {
		_ = below.SetLinger(0) // closing it is what counts
	}
	return c.Conn.Close()
}

// CloseWrite lets a server end its answer before it closes a connection whose request it has not read.
func (c *connection) CloseWrite() error {
	if below, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return below.CloseWrite()
	}
	return errors.ErrUnsupported
}
