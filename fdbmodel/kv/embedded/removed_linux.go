package embedded

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// isRemoved reports whether a file that is open has no name any more. It asks for nothing else: a file whose times
// were asked for takes longer for its next write and sync.
func isRemoved(f vfs.File) bool {
	var stat unix.Statx_t
	fd := f.Fd()
	return fd != vfs.InvalidFd && unix.Statx(int(fd), "", unix.AT_EMPTY_PATH, unix.STATX_NLINK, &stat) == nil &&
		stat.Mask&unix.STATX_NLINK != 0 && stat.Nlink == 0
}
