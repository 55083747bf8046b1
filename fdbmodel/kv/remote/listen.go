package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/socket"
)

// ListenUnix makes a Unix socket at path that only its owner may use (mode
// 0600). An existing socket that does not answer is replaced. It returns
// kv.ErrStoreInUse if one answers, and ErrBadAddress if path is not a socket.
// Closing the listener removes the socket.
func ListenUnix(path string) (net.Listener, error) {
	if err := checkSocketPath(path); err != nil {
		return nil, err
	}
	if err := checkVacant(path); err != nil {
		return nil, err
	}
	// The socket gets its mode where others can't reach it, and then its name.
	private, err := makePrivate(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("remote: listen at %s: %w", path, err)
	}
	defer os.Remove(private)
	hidden := filepath.Join(private, "s")
	if err := checkSocketPath(hidden); err != nil {
		return nil, err
	}
	l, err := socket.Listen(hidden, path)
	if err != nil {
		return nil, fmt.Errorf("remote: listen at %s: %w", path, err)
	}
	return l, nil
}

// makePrivate makes a directory that only its owner may enter, with a short
// name.
func makePrivate(in string) (string, error) {
	for try := 0; ; try++ {
		name := filepath.Join(in, fmt.Sprintf(".%04x", rand.Uint32N(1<<16)))
		if err := os.Mkdir(name, 0o700); err == nil || !errors.Is(err, fs.ErrExist) || try == 100 {
			return name, err
		}
	}
}

func checkSocketPath(path string) error {
	if path == "" || len(path) > socket.MaxPath {
		return fmt.Errorf("%w: the socket's path %q has %d bytes, and must have 1 to %d: use a shorter directory",
			ErrBadAddress, path, len(path), socket.MaxPath)
	}
	return nil
}

// checkVacant returns nil if there is nothing at path, or a socket that does not
// answer.
func checkVacant(path string) error {
	found, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remote: listen at %s: %w", path, err)
	}
	if found.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("%w: %s exists and is not a socket", ErrBadAddress, path)
	}
	switch answers, err := socket.Answers(path); {
	case err != nil:
		return fmt.Errorf("remote: listen at %s: can't find out whether it is in use: %w", path, err)
	case answers:
		return fmt.Errorf("%w: another process answers at %s", kv.ErrStoreInUse, path)
	}
	return nil
}
