package embedded

import (
	"bytes"
	"log/slog"
	"path"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/faultdisk"
)

// TestHintsThatCantBeRead has the disk refuse the file that nothing depends on: the store opens, and says so.
func TestHintsThatCantBeRead(t *testing.T) {
	t.Parallel()
	disk := faultdisk.New()
	s := open(t, "store", Options{FS: disk, Inline: true})
	write(t, s, "a", "1")
	s.hinted = true // as if rows had been on disk alone
	require.NoError(t, s.Close())
	require.Contains(t, disk.Names("store"), "store/"+coldName)
	disk.Before = func(c faultdisk.Call) error {
		if c.Op == "open" && path.Base(c.Path) == coldName {
			return syscall.EIO
		}
		return nil
	}
	var log bytes.Buffer
	s = open(t, "store", Options{FS: disk, Inline: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.Equal(t, "1", string(read(t, s, "a")))
	require.Contains(t, log.String(), "what lay on disk alone can't be read")
}
