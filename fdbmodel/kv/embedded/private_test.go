//go:build unix

package embedded

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// used opens a store, writes to it and closes it, with a checkpoint and without.
func used(t *testing.T, dir string, o Options) {
	t.Helper()
	for range 2 {
		s, err := Open(t.Context(), dir, o)
		require.NoError(t, err)
		tx := s.Begin(kv.Options{})
		tx.Set([]byte("key"), make([]byte, 8<<10))
		_, err = tx.Commit(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.Checkpoint(t.Context()))
		require.NoError(t, s.Close())
	}
}

func modes(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	found := map[string]fs.FileMode{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		info, err := entry.Info()
		require.NoError(t, err)
		found[filepath.Ext(entry.Name())+"/"+info.Mode().String()] = info.Mode()
	}
	return found
}

func TestFilesAreForTheirUserAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	used(t, dir, Options{})
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, fs.ModeDir|0o700, info.Mode())
	require.Len(t, modes(t, dir), 3, "manifest and lock, log, rows: one mode each")
	for name, mode := range modes(t, dir) {
		require.Equal(t, fs.FileMode(0o600), mode, name)
	}

	// A store whose files all could read is taken away from them.
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		require.NoError(t, os.Chmod(filepath.Join(dir, entry.Name()), 0o644))
	}
	mine := filepath.Join(dir, "notes.txt")
	require.NoError(t, os.WriteFile(mine, nil, 0o644))
	used(t, dir, Options{})
	for name, mode := range modes(t, dir) {
		if filepath.Dir(name) != ".txt" {
			require.Equal(t, fs.FileMode(0o600), mode, name)
		}
	}
	info, err = os.Stat(mine)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o644), info.Mode(), "a file that is not the store's")
}

func TestDirectoriesOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	used(t, dir, Options{})
	require.NoError(t, os.Chmod(dir, 0o777))
	_, err := Open(t.Context(), dir, Options{})
	require.ErrorIs(t, err, kv.ErrExposed)
	require.ErrorContains(t, err, "chmod go-w "+dir)
	require.ErrorContains(t, err, "?exposed=on")
	used(t, dir, Options{Exposed: true})
	require.NoError(t, os.Chmod(dir, 0o755))
	used(t, dir, Options{})
	if os.Geteuid() != 0 {
		t.Skip("only root can make a directory of another user")
	}
	require.NoError(t, os.Chown(dir, 54321, 54321))
	_, err = Open(t.Context(), dir, Options{})
	require.ErrorIs(t, err, kv.ErrExposed)
	used(t, dir, Options{Exposed: true})
}

// TestFilesThatLeadElsewhereAreRefused plants links in the place of each file of
// a store: none is followed.
func TestFilesThatLeadElsewhereAreRefused(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "precious")
	require.NoError(t, os.WriteFile(outside, []byte("precious"), 0o600))
	made := filepath.Join(t.TempDir(), "store")
	used(t, made, Options{})
	entries, err := os.ReadDir(made)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(entries), 4)
	for _, planted := range entries {
		dir := filepath.Join(t.TempDir(), "store")
		require.NoError(t, os.CopyFS(dir, os.DirFS(made)))
		require.NoError(t, os.Remove(filepath.Join(dir, planted.Name())))
		require.NoError(t, os.Symlink(outside, filepath.Join(dir, planted.Name())))
		_, err := Open(t.Context(), dir, Options{})
		require.ErrorIs(t, err, kv.ErrExposed, planted.Name())
		require.ErrorContains(t, err, planted.Name())
	}
	content, err := os.ReadFile(outside)
	require.NoError(t, err)
	require.Equal(t, "precious", string(content))
}
