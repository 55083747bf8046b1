package workers

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/futura-run/futura/workers/objects/peer"
)

// socketName is how many characters the name of a worker's socket has.
const socketName = 12

// listenLocal makes a worker's socket under the first of the bases where it can, leaving out empty ones. A base of the
// environment may be gone, or another user's: su keeps that of the session that it was called in.
func listenLocal(bases ...string) (net.Listener, error) {
	var err error
	for _, base := range bases {
		if base == "" {
			continue
		}
		l, failed := listenBelow(base)
		if failed == nil {
			return l, nil
		}
		err = errors.Join(err, failed)
	}
	return nil, fmt.Errorf("%w: set XDG_RUNTIME_DIR or TMPDIR to a directory that can be written", err)
}

// listenBelow makes a worker's socket in a directory under base that all workers of
// the user share: each removes the sockets of those that were killed. Where another
// user has taken the directory's name, they share one with a random name.
func listenBelow(base string) (net.Listener, error) {
	dir := filepath.Join(base, fmt.Sprintf("futura-objects-%d", os.Getuid()))
	l, err := listenIn(dir)
	if err == nil {
		return l, nil
	}
	others, _ := filepath.Glob(dir + "-*") // a base that is no pattern finds none
	for _, other := range others {
		if l, err := listenIn(other); err == nil {
			return l, nil
		}
	}
	random, failed := os.MkdirTemp(base, filepath.Base(dir)+"-") // mode 0700
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	if l, failed = peer.ListenUnix(random, rand.Text()[:socketName]); failed != nil {
		return nil, errors.Join(err, failed, os.Remove(random))
	}
	return l, nil
}

// listenIn makes a socket in a directory, which may be missing. A link is refused: its
// owner would choose the directory.
func listenIn(dir string) (net.Listener, error) {
	if at, err := os.Lstat(dir); err == nil && !at.IsDir() {
		return nil, fmt.Errorf("objects: %s is not a directory", dir)
	}
	return peer.ListenUnix(dir, rand.Text()[:socketName])
}
