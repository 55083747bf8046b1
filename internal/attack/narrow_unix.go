//go:build unix

package attack

import (
	"errors"
	"syscall"
)

// narrow gives a connection a small receive buffer before it is opened.
func narrow(_, _ string, c syscall.RawConn) (err error) {
	return errors.Join(c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, narrowBytes)
	}), err)
}
