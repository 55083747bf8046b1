//go:build !linux

package embedded

import "github.com/cockroachdb/pebble/v2/vfs"

// isRemoved reports nothing: this system is not asked.
func isRemoved(vfs.File) bool { return false }
