//go:build !unix

package embedded

import (
	"io"
	"os"
)

// lockFileShared keeps the file open. Systems of this kind keep no other process
// out.
func lockFileShared(path string) (io.Closer, error) { return os.Open(path) }

// lockPath does nothing: where a file that is open can't be removed, its lock is enough.
func lockPath(string, bool) (io.Closer, error) { return io.NopCloser(nil), nil }
