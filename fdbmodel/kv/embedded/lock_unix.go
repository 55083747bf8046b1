//go:build unix

package embedded

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// lockFileShared keeps processes from locking a file for themselves.
func lockFileShared(path string) (io.Closer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	lock := syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &lock); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
