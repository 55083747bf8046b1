package peer

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// sendFile sends some bytes and a descriptor beside them.
func sendFile(c *net.UnixConn, head []byte, f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		_, _, failed = c.WriteMsgUnix(head, unix.UnixRights(int(fd)), nil)
	})
	return errors.Join(err, failed)
}

// receiveFile fills head, and returns the descriptor that came beside it, or nil.
func receiveFile(c *net.UnixConn, head []byte) (*os.File, error) {
	var control [64]byte
	n, controlled, _, _, err := c.ReadMsgUnix(head, control[:])
	if err != nil {
		return nil, err
	}
	var files []*os.File
	messages, err := unix.ParseSocketControlMessage(control[:controlled])
	for i := range messages {
		descriptors, failed := unix.ParseUnixRights(&messages[i])
		err = errors.Join(err, failed)
		for _, fd := range descriptors {
			files = append(files, os.NewFile(uintptr(fd), "futura-object"))
		}
	}
	if err == nil && n < len(head) {
		// Descriptors come with the first byte of their message.
		err = readFull(c, head[n:])
	}
	if err == nil && len(files) > 1 {
		err = fmt.Errorf("%w: %d files", ErrMalformed, len(files))
	}
	if err != nil {
		for _, f := range files {
			_ = f.Close() // it was not asked for
		}
		return nil, err
	}
	if len(files) == 0 {
		return nil, nil
	}
	return files[0], nil
}
