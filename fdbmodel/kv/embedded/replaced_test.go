package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// TestAReplacedDirectoryIsLeftAlone moves the directory of an open store away, and makes another store in
// its place: what the first one writes does not destroy that.
func TestAReplacedDirectoryIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	first := open(t, dir, Options{})
	write(t, first, "a", "first")
	other := filepath.Join(t.TempDir(), "other")
	second := open(t, other, Options{})
	write(t, second, "a", "second")
	require.NoError(t, second.Close())
	require.NoError(t, os.Rename(dir, dir+".moved"))
	require.NoError(t, os.Rename(other, dir))
	theirs, err := os.ReadDir(dir)
	require.NoError(t, err)
	_, err = newTableWriter(first.disk.journal.dir, 1)
	require.ErrorContains(t, err, "was replaced by another one")
	require.ErrorContains(t, first.Checkpoint(t.Context()), "was replaced by another one")
	first.hinted = true // as if rows had been on disk alone
	require.ErrorIs(t, first.Close(), kv.ErrStoreFailed)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, len(theirs), "%v", left)
	require.NoError(t, os.Rename(dir, other))
	again := open(t, other, Options{})
	require.Equal(t, "second", string(read(t, again, "a")))
}
