package faultdisk_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/faultdisk"
)

// content returns a file, or nil if it is not there.
func content(t *testing.T, d *faultdisk.Disk, name string) []byte {
	f, err := d.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return b
}

// made returns a disk with a file whose first thousand bytes were synced, and the
// file.
func made(t *testing.T) (*faultdisk.Disk, vfs.File) {
	d := faultdisk.New()
	require.NoError(t, d.MkdirAll("dir", 0))
	f, err := d.Create("dir/file", "")
	require.NoError(t, err)
	_, err = f.Write(bytes.Repeat([]byte{1}, 1000))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	dir, err := d.OpenDir("dir")
	require.NoError(t, err)
	require.NoError(t, dir.Sync())
	require.NoError(t, dir.Close())
	return d, f
}

func TestPowerFailures(t *testing.T) {
	t.Parallel()
	d, f := made(t)
	_, err := f.Write(bytes.Repeat([]byte{2}, 3000))
	require.NoError(t, err)
	_, err = d.Create("dir/other", "")
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	require.Len(t, content(t, d.Image(faultdisk.All, random), "dir/file"), 1000)
	require.Nil(t, content(t, d.Image(faultdisk.All, random), "dir/other"))
	require.Equal(t, content(t, d, "dir/file"), content(t, d.Image(faultdisk.None, random), "dir/file"))
	require.NotNil(t, content(t, d.Image(faultdisk.None, random), "dir/other"))
	hollow := content(t, d.Image(faultdisk.Hollow, random), "dir/file")
	require.Equal(t, make([]byte, 3000), hollow[1000:])
	found := map[string]bool{}
	for range 100 {
		for _, loss := range []faultdisk.Loss{faultdisk.Some, faultdisk.Torn} {
			b := content(t, d.Image(loss, random), "dir/file")
			require.Equal(t, bytes.Repeat([]byte{1}, 1000), b[:1000], "what was synced")
			found[string(b)] = true
		}
	}
	require.Greater(t, len(found), 50)
	require.Equal(t, content(t, d, "dir/file"), content(t, d.Killed(), "dir/file"))
	require.Len(t, content(t, d.Killed().Image(faultdisk.All, random), "dir/file"), 1000)
}

// TestSyncThatFails leaves what it should have written in the cache alone.
func TestSyncThatFails(t *testing.T) {
	t.Parallel()
	d, f := made(t)
	_, err := f.Write(bytes.Repeat([]byte{2}, 3000))
	require.NoError(t, err)
	d.Before = func(faultdisk.Call) error { return syscall.EIO }
	require.ErrorIs(t, f.Sync(), syscall.EIO)
	d.Before = nil
	require.NoError(t, f.Sync())
	require.Len(t, content(t, d, "dir/file"), 4000)
	image := content(t, d.Image(faultdisk.None, nil), "dir/file")
	require.Equal(t, bytes.Repeat([]byte{1}, 1000), image[:1000])
	require.NotContains(t, string(image), "\x02")
}

func TestShortages(t *testing.T) {
	t.Parallel()
	d, f := made(t)
	d.Space = 10
	n, err := f.Write(make([]byte, 30))
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Equal(t, 10, n)
	d.Space, d.Descriptors = -1, 1
	g, err := d.Open("dir/file")
	require.NoError(t, err)
	_, err = d.Open("dir/file")
	require.ErrorIs(t, err, syscall.EMFILE)
	require.NoError(t, g.Close())
	_, err = d.Open("dir/file")
	require.NoError(t, err)
	d.ReadOnly, d.Descriptors = true, -1
	_, err = f.Write([]byte{1})
	require.ErrorIs(t, err, syscall.EROFS)
	_, err = d.Lock("dir/LOCK")
	require.ErrorIs(t, err, syscall.EROFS)
	require.Len(t, content(t, d, "dir/file"), 1010)
	require.NoError(t, d.Flip("dir/file", 3))
	require.Equal(t, byte(1|8), content(t, d, "dir/file")[0])
}
