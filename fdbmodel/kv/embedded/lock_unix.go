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

// lockPath locks a directory, and returns errLocked if another opening of it has a lock that excludes this
// one. File systems that lock no directories, such as NFS, do without.
func lockPath(path string, shared bool) (io.Closer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	for {
		switch err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); {
		case err == nil:
			return lockedPath{f}, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return nil, errors.Join(errLocked, f.Close())
		default:
			return io.NopCloser(nil), f.Close()
		}
	}
}

type lockedPath struct{ file *os.File }

// Close implements io.Closer. A process that is just being started has the file open as well: its lock goes at once.
func (l lockedPath) Close() error {
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}
