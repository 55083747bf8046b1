//go:build !unix || aix || solaris

package main

import "os"

// lockFile does nothing: this system has no such locks.
func lockFile(*os.File) error { return nil }

// takesLock is false: this system has no such locks.
func takesLock(*os.File) bool { return false }

// isLocked is false: this system has no such locks.
func isLocked(*os.File) bool { return false }
