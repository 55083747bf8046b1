package stack

import (
	"net"
	"syscall"
	"time"
)

// Options of sockets that package syscall does not name.
const (
	tcpUserTimeout = 18
	soBufLock      = 72 // since Linux 5.14
)

// shrink bounds what the kernel holds for a connection, and for how long.
func shrink(c net.Conn, slack time.Duration) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(unauthenticatedBuffer) // the connection works without it
		setOption(tcp, syscall.IPPROTO_TCP, tcpUserTimeout, int(slack.Milliseconds()))
	}
}

// grow lets the kernel choose again.
func grow(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(authenticatedBuffer)
		setOption(tcp, syscall.SOL_SOCKET, soBufLock, 0)
		setOption(tcp, syscall.IPPROTO_TCP, tcpUserTimeout, 0)
	}
}

func setOption(c *net.TCPConn, level, name, value int) {
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), level, name, value) }) // old kernels lack some
	}
}
