//go:build !unix || aix || solaris

package main

import "os"

// lockFile does nothing: this system has no such locks.
func lockFile(*os.File) error { return nil }

// isLocked is false: this system has no such locks.
func isLocked(*os.File) bool { return false }
