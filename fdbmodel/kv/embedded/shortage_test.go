package embedded

import (
	"fmt"
	"math"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// scarceFS opens a number of files and then finds no more descriptors.
type scarceFS struct {
	vfs.FS
	left    atomic.Int64
	refused atomic.Int64
}

func (f *scarceFS) take(open func() (vfs.File, error)) (vfs.File, error) {
	if f.left.Add(-1) < 0 {
		f.refused.Add(1)
		return nil, fmt.Errorf("open: %w", syscall.EMFILE)
	}
	return open()
}

func (f *scarceFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.take(func() (vfs.File, error) { return f.FS.Create(name, c) })
}

func (f *scarceFS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	return f.take(func() (vfs.File, error) { return f.FS.Open(name, o...) })
}

func (f *scarceFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return f.take(func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, o...) })
}

func (f *scarceFS) OpenDir(name string) (vfs.File, error) {
	return f.take(func() (vfs.File, error) { return f.FS.OpenDir(name) })
}

// TestShortageOfDescriptors has the descriptors end at each place of a rotation
// in turn: commits go on in the old segment, and the log rotates when there are
// some again.
func TestShortageOfDescriptors(t *testing.T) {
	t.Parallel()
	scarce := &scarceFS{FS: vfs.NewMem()}
	scarce.left.Store(math.MaxInt64)
	o := tiny(Options{FS: scarce, Inline: true})
	s := open(t, "store", o)
	written := 0
	write := func(rows int) {
		for range rows {
			written++
			tx := s.Begin(kv.Options{})
			tx.Set(fmt.Appendf(nil, "%05d", written), []byte("a value that fills segments"))
			_, err := tx.Commit(t.Context())
			require.NoError(t, err)
		}
	}
	scarce.left.Store(0)
	tx := s.Begin(kv.Options{})
	tx.Set([]byte("first"), nil)
	_, err := tx.Commit(t.Context())
	require.ErrorIs(t, err, kv.ErrUnavailable)
	require.ErrorIs(t, err, syscall.EMFILE)
	scarce.left.Store(math.MaxInt64)
	write(1)
	for left := range int64(12) {
		scarce.left.Store(left)
		before := scarce.refused.Load()
		write(200)
		require.Greater(t, scarce.refused.Load(), before)
		require.NoError(t, s.Err())
		scarce.left.Store(math.MaxInt64)
		segments, checkpoints := s.disk.journal.manifest.NextFile, s.Stats().Checkpoints
		write(200)
		require.Greater(t, s.disk.journal.manifest.NextFile, segments)
		require.GreaterOrEqual(t, s.Stats().Checkpoints, checkpoints)
	}
	require.NoError(t, s.Close())
	require.Len(t, contents(t, open(t, "store", o)), written)
}
