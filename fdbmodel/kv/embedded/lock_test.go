package embedded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

const lockDirVariable = "FUTURA_EMBEDDED_LOCK_DIR"

// TestASecondOpeningKeepsTheLock opens a store that this process has open, in both modes, and
// has another process try.
func TestASecondOpeningKeepsTheLock(t *testing.T) {
	t.Parallel()
	for _, exposed := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "store")
		s := open(t, dir, Options{Exposed: exposed})
		for range 2 {
			_, err := Open(t.Context(), dir, Options{Exposed: exposed})
			require.ErrorIs(t, err, kv.ErrStoreInUse)
			require.Equal(t, "in use: true", openElsewhere(t, dir))
		}
		require.NoError(t, s.Close())
		require.Equal(t, "in use: false", openElsewhere(t, dir))
	}
}

// TestTheLockOfADirectoryOutlivesItsFile removes LOCK, and each time what an opening left there: another process stays
// out until the store is closed.
func TestTheLockOfADirectoryOutlivesItsFile(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, dir, Options{})
	for range 2 {
		require.NoError(t, os.Remove(filepath.Join(dir, lockName)))
		require.Equal(t, "in use: true", openElsewhere(t, dir))
		write(t, s, "a", "1")
	}
	require.NoError(t, s.Close())
	require.Equal(t, "in use: false", openElsewhere(t, dir))
}

// readOnlyDisk is a disk on which no file can be locked to be written.
type readOnlyDisk struct{ vfs.FS }

func (d readOnlyDisk) Unwrap() vfs.FS { return d.FS }

func (d readOnlyDisk) Lock(name string) (io.Closer, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EROFS}
}

// TestReadersShareADirectory opens a store twice that can't be written: that keeps those out that can, whether
// there is a file LOCK or not.
func TestReadersShareADirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, open(t, dir, Options{}).Close())
	o := Options{FS: readOnlyDisk{vfs.Default}}
	for range 2 {
		first, second := open(t, dir, o), open(t, dir, o)
		require.Equal(t, "in use: true", openElsewhere(t, dir))
		require.NoError(t, first.Close())
		require.Equal(t, "in use: true", openElsewhere(t, dir))
		require.NoError(t, second.Close())
		require.NoError(t, os.Remove(filepath.Join(dir, lockName)))
	}
	require.Equal(t, "in use: false", openElsewhere(t, dir))
}

// openElsewhere has another process open a store, and returns what it says.
func openElsewhere(t *testing.T, dir string) string {
	child := exec.Command(os.Args[0], "-test.run=^TestLockChild$", "-test.v=false")
	child.Env = append(os.Environ(), lockDirVariable+"="+dir)
	out, err := child.Output()
	require.NoError(t, err)
	said, _, _ := strings.Cut(string(out), "\n")
	return said
}

// TestLockChild is the other process.
func TestLockChild(t *testing.T) {
	dir := os.Getenv(lockDirVariable)
	if dir == "" {
		t.Skip("runs in processes of TestASecondOpeningKeepsTheLock")
	}
	s, err := Open(t.Context(), dir, Options{})
	fmt.Printf("in use: %v\n", errors.Is(err, kv.ErrStoreInUse))
	if s != nil {
		require.NoError(t, s.Close())
	}
}
