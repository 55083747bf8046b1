package embedded

import (
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/faultdisk"
)

// TestCommitsOnAFullDiskDoNotEachBeginTheLog has the log begin on a disk without room, and on one that says it has
// some. One commit tries, the others end with its error until there is more room, or some time has passed, and nothing
// is left.
func TestCommitsOnAFullDiskDoNotEachBeginTheLog(t *testing.T) {
	t.Parallel()
	for name, space := range map[string]int64{"no room": 0, "some room": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk, virtual := faultdisk.New(), clock.NewVirtual(time.Unix(0, 0))
			o := Options{FS: disk, Inline: true, Clock: virtual}
			s := open(t, "store", o)
			write(t, s, "a", "1")
			require.NoError(t, s.Close())
			before := disk.Names("store")
			tries, full := 0, true
			disk.Before = func(c faultdisk.Call) error {
				if path.Ext(c.Path) != segmentSuffix || c.Op != "create" && c.Op != "write" {
					return nil
				}
				if c.Op == "create" {
					tries++
				}
				if c.Op == "write" && full {
					return syscall.ENOSPC
				}
				return nil
			}
			disk.SetSpace(space)
			s = open(t, "store", o)
			said := map[string]bool{}
			try := func() error {
				tx := s.Begin(kv.Options{})
				tx.Set([]byte("a"), []byte("2"))
				_, err := tx.Commit(t.Context())
				return err
			}
			for pause := range 4 {
				for range 20 {
					err := try()
					require.ErrorIs(t, err, kv.ErrReadOnly)
					said[err.Error()] = true
				}
				require.Equal(t, pause+1, tries)
				virtual.Advance(fullPause)
			}
			require.Len(t, said, 1, "the file has another name each time")
			require.Error(t, try())
			full = false
			if space == 0 {
				disk.SetSpace(-1)
			} else {
				require.Error(t, try())
				virtual.Advance(fullPause)
			}
			write(t, s, "a", "3")
			require.NoError(t, s.Close())
			after := disk.Names("store")
			require.Len(t, after, len(before), "%v", after)
			require.False(t, strings.HasSuffix(strings.Join(after, " "), manifestNewName))
			require.Equal(t, "3", string(read(t, open(t, "store", o), "a")))
		})
	}
}

// TestNoDescriptorsForTheLogSaysWhatHelps names the way out, and leaves no file each time.
func TestNoDescriptorsForTheLogSaysWhatHelps(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"create", "open"} {
		disk := faultdisk.New()
		s := open(t, "store", Options{FS: disk, Inline: true})
		before := disk.Names("store")
		disk.Before = func(c faultdisk.Call) error {
			if c.Op == op && path.Ext(c.Path) == segmentSuffix {
				return syscall.EMFILE
			}
			return nil
		}
		tx := s.Begin(kv.Options{})
		tx.Set([]byte("a"), []byte("1"))
		_, err := tx.Commit(t.Context())
		require.ErrorIs(t, err, kv.ErrUnavailable)
		require.ErrorContains(t, err, "ulimit -n")
		require.Equal(t, before, disk.Names("store"))
		disk.Before = nil
		write(t, s, "a", "2")
	}
}
