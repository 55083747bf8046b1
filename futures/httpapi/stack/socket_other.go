//go:build !linux

package stack

import (
	"net"
	"time"
)

// shrink bounds what the kernel holds for a connection.
func shrink(c net.Conn, _ time.Duration) { setBuffer(c, unauthenticatedBuffer) }

// grow gives a connection room for large answers.
func grow(c net.Conn) { setBuffer(c, authenticatedBuffer) }

func setBuffer(c net.Conn, bytes int) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(bytes) // the connection works without it
	}
}
