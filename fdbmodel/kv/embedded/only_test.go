package embedded

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// TestOnlyOneStoreIsOpened opens a store by its id where there is none, where another one is, and where it is.
func TestOnlyOneStoreIsOpened(t *testing.T) {
	t.Parallel()
	dir, other := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "other")
	_, err := ID(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, open(t, dir, Options{}).Close())
	require.NoError(t, open(t, other, Options{}).Close())
	id, err := ID(dir)
	require.NoError(t, err)
	require.NoError(t, open(t, dir, Options{Only: id}).Close())

	_, err = Open(t.Context(), other, Options{Only: id})
	require.ErrorIs(t, err, kv.ErrUnavailable)
	require.ErrorContains(t, err, "another store")
	missing, empty := dir+".missing", t.TempDir()
	for _, nowhere := range []string{missing, empty} {
		_, err := Open(t.Context(), nowhere, Options{Only: id})
		require.ErrorIs(t, err, kv.ErrUnavailable)
		require.ErrorContains(t, err, "no store any more")
	}
	require.NoDirExists(t, missing)
	left, err := os.ReadDir(empty)
	require.NoError(t, err)
	require.Empty(t, left)
}
