//go:build unix && !aix && !solaris

package main

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks a file until it is closed. It returns errWritten if another one has.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return errWritten
	case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.ENOSYS):
		return nil // the file system has no locks
	}
	return err
}

// takesLock locks a file as lockFile does, and reports whether it is locked now: where the file system has no locks
// it is not.
func takesLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// isLocked reports whether another process, or another open file of this one, has locked a file
// with lockFile.
func isLocked(f *os.File) bool {
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
