package embedded

import (
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/faultdisk"
)

// TestOpeningThatFailsLeavesNoFileOpen whatever bit of the end of a file is damaged.
func TestOpeningThatFailsLeavesNoFileOpen(t *testing.T) {
	t.Parallel()
	const descriptors = 100
	disk := faultdisk.New()
	disk.Descriptors = descriptors
	o := Options{FS: disk, Inline: true}
	s := open(t, "store", o)
	write(t, s, "a", "1")
	require.NoError(t, s.Checkpoint(context.Background()))
	write(t, s, "b", "2")
	require.NoError(t, s.Close())
	require.Equal(t, descriptors, disk.Descriptors)
	failed := 0
	for name, content := range files(t, disk) {
		for bit := max(0, 8*len(content)-8*64); bit < 8*len(content); bit++ {
			require.NoError(t, disk.Flip("store/"+name, bit))
			s, err := Open(context.Background(), "store", o)
			if err == nil {
				require.NoError(t, s.Close())
			} else {
				require.ErrorIs(t, err, kv.ErrCorrupt)
				failed++
			}
			require.Equal(t, descriptors, disk.Descriptors, "bit %d of %s: %v", bit, name, err)
			require.NoError(t, disk.Flip("store/"+name, bit))
		}
	}
	require.NotZero(t, failed)
}

// TestCheckpointThatMayBeInstalledLeavesNoFileOpen when the store that it ends is closed.
func TestCheckpointThatMayBeInstalledLeavesNoFileOpen(t *testing.T) {
	t.Parallel()
	const descriptors = 100
	for manifests := 1; manifests <= 2; manifests++ {
		disk := faultdisk.New()
		disk.Descriptors = descriptors
		s := open(t, "store", Options{FS: disk, Inline: true})
		write(t, s, "a", "1")
		left := manifests
		disk.Before = func(c faultdisk.Call) error {
			if c.Op == "rename" {
				left--
			}
			if c.Op == "syncdir" && left == 0 {
				return syscall.EIO
			}
			return nil
		}
		require.ErrorIs(t, s.Checkpoint(context.Background()), syscall.EIO)
		require.ErrorIs(t, s.Close(), kv.ErrStoreFailed)
		require.Equal(t, descriptors, disk.Descriptors, "manifest %d", manifests)
		disk.Before = nil
		require.Equal(t, map[string]string{"a": "1"}, contents(t, open(t, "store", Options{FS: disk, Inline: true})))
	}
}
