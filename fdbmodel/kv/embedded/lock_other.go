//go:build !unix

package embedded

import (
	"io"
	"os"
)

// lockFileShared keeps the file open. Systems of this kind keep no other process
// out.
func lockFileShared(path string) (io.Closer, error) { return os.Open(path) }
