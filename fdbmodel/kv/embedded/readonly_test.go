package embedded

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/faultdisk"
)

// TestStoreThatCanOnlyBeRead opens one that was closed, or killed, on a disk that
// is full or mounted read-only, and goes on once it can be written.
func TestStoreThatCanOnlyBeRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuse func(*faultdisk.Disk, bool)
		cause  error
		says   string
		// heals says that the opened store goes on.
		heals bool
	}{
		"full": {func(d *faultdisk.Disk, refuse bool) {
			if d.Space = -1; refuse {
				d.Space = 0
			}
		}, syscall.ENOSPC, "free some space; what only reads still works", true},
		"read-only": {func(d *faultdisk.Disk, refuse bool) { d.ReadOnly = refuse },
			syscall.EROFS, "mount it writable; what only reads still works", false},
	} {
		for _, closed := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				disk := faultdisk.New()
				s := open(t, "store", Options{FS: disk, Inline: true})
				write(t, s, "a", "1")
				if closed {
					require.NoError(t, s.Close())
				}
				disk = disk.Killed()
				c.refuse(disk, true)
				var log bytes.Buffer
				o := Options{FS: disk, Inline: true, Logger: slog.New(slog.NewTextHandler(&log, nil))}
				s = open(t, "store", o)
				require.Equal(t, []byte("1"), read(t, s, "a"))
				require.Equal(t, !closed, s.Traits().Unwritable != nil, "nothing has tried, or the opening has")
				tx := s.Begin(kv.Options{})
				tx.Set([]byte("a"), []byte("2"))
				_, err := tx.Commit(t.Context())
				require.ErrorIs(t, err, kv.ErrReadOnly)
				require.ErrorIs(t, err, c.cause)
				require.ErrorContains(t, err, c.says)
				require.Equal(t, !c.heals, strings.HasSuffix(err.Error(), "open the store again, which is locked for reading"))
				require.Equal(t, err, s.Traits().Unwritable)
				require.NoError(t, s.Err())
				require.ErrorIs(t, s.Checkpoint(t.Context()), kv.ErrReadOnly)
				require.Equal(t, []byte("1"), read(t, s, "a"))
				require.Equal(t, !closed, bytes.Contains(log.Bytes(), []byte("was not closed and can only be read")), log.String())

				c.refuse(disk, false)
				if !c.heals {
					require.NoError(t, s.Close())
					s = open(t, "store", o)
				}
				write(t, s, "a", "3")
				require.NoError(t, s.Traits().Unwritable)
				require.NoError(t, s.Close())
				require.Equal(t, []byte("3"), read(t, open(t, "store", o), "a"))
			})
		}
	}
}

// TestDiskThatFillsSlowly postpones segments and checkpoints as long as the
// records find room, and fails after that: what was acknowledged is there.
func TestDiskThatFillsSlowly(t *testing.T) {
	t.Parallel()
	for space := int64(0); space < 4000; space += 50 {
		disk := faultdisk.New()
		o := tiny(Options{FS: disk, Inline: true})
		s := open(t, "store", o)
		write(t, s, "first", "")
		disk.Space = space
		acked, err := 0, error(nil)
		for i := 1; err == nil; i++ {
			tx := s.Begin(kv.Options{})
			tx.Set(fmt.Appendf(nil, "%04d", i), make([]byte, 60))
			if _, err = tx.Commit(t.Context()); err == nil {
				acked = i
			}
		}
		require.ErrorIs(t, err, kv.ErrUnknownResult)
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorIs(t, s.Err(), kv.ErrStoreFailed)
		require.ErrorIs(t, s.Close(), kv.ErrStoreFailed)
		// The records of 60 bytes take a little more than twice that.
		require.GreaterOrEqual(t, acked, int(space)/130-1, "with %d bytes", space)

		o.FS = disk.Killed()
		rows := contents(t, open(t, "store", o))
		require.GreaterOrEqual(t, len(rows), acked+1)
		require.LessOrEqual(t, len(rows), acked+2)
	}
}
