//go:build unix

package stack

import (
	"os"
	"syscall"
)

// lockTokens keeps other processes from changing a token file until unlock is
// called. The lock is a file beside it, since the token file is replaced.
func lockTokens(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	unlock = func() { _ = f.Close() } // this releases the lock
	for err = syscall.EINTR; err == syscall.EINTR; {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		unlock()
		return nil, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return unlock, nil
}
