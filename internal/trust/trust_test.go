//go:build unix

package trust

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// strangers is a user and a group that are nobody's here.
const strangers = 54321

func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "dir")
	require.ErrorIs(t, Directory(dir), os.ErrNotExist)
	require.NoError(t, os.Mkdir(dir, 0o700))
	for mode, exposed := range map[os.FileMode]bool{
		0o700: false, 0o755: false, 0o750: false, 0o702: true, 0o777: true, 0o777 | os.ModeSticky: true,
	} {
		require.NoError(t, os.Chmod(dir, mode))
		err := Directory(dir)
		if !exposed {
			require.NoError(t, err, mode)
			continue
		}
		require.ErrorIs(t, err, ErrExposed, mode)
		require.ErrorContains(t, err, "chmod go-w "+dir)
	}
	if os.Geteuid() != 0 {
		t.Log("as root, directories of others are tried as well")
		return
	}
	require.NoError(t, os.Chmod(dir, 0o770))
	require.NoError(t, Directory(dir), "the user's own group")
	require.NoError(t, os.Chown(dir, 0, strangers))
	require.NoError(t, os.Chmod(dir, 0o770))
	require.ErrorIs(t, Directory(dir), ErrExposed)
	require.NoError(t, os.Chmod(dir, 0o700))
	require.NoError(t, os.Chown(dir, strangers, 0))
	require.ErrorContains(t, Directory(dir), "belongs to user 54321")
}

func TestSecret(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret")
	_, err := ReadSecret(path, 10)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorIs(t, Secret(path), os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("content"), 0o600))
	for mode, exposed := range map[os.FileMode]bool{
		0o600: false, 0o400: false, 0o640: true, 0o604: true, 0o620: true, 0o644: true,
	} {
		require.NoError(t, os.Chmod(path, mode))
		content, err := ReadSecret(path, 7)
		if !exposed {
			require.NoError(t, err, mode)
			require.NoError(t, Secret(path))
			require.Equal(t, "content", string(content))
			continue
		}
		require.ErrorIs(t, err, ErrExposed, mode)
		require.ErrorIs(t, Secret(path), ErrExposed)
		require.ErrorContains(t, err, "chmod 600 "+path)
	}
	require.NoError(t, os.Chmod(path, 0o600))
	_, err = ReadSecret(path, 6)
	require.ErrorContains(t, err, "more than 6 bytes")
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(path, strangers, strangers))
		require.NoError(t, os.Chmod(path, 0o644))
		require.NoError(t, Secret(path), "it is another user's to protect")
	}
}
