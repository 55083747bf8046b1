//go:build !linux

package peer

import (
	"errors"
	"net"
	"os"
)

func sendFile(*net.UnixConn, []byte, *os.File) error { return errors.ErrUnsupported }

func receiveFile(c *net.UnixConn, head []byte) (*os.File, error) { return nil, readFull(c, head) }
