package workers

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/workers/objects/peer"
)

// A user that takes the name of the sockets' directory first does not keep workers from
// starting, and does not choose another directory for them.
func TestATakenSocketDirectoryIsNoObstacle(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(path, mine string) error{
		"open": func(path, _ string) error {
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
			return os.Chmod(path, 0o777) //nolint:gosec // what the worker has to refuse
		},
		"file": func(path, _ string) error { return os.WriteFile(path, nil, 0o600) },
		"link": func(path, mine string) error { return os.Symlink(mine, path) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, err := os.MkdirTemp("", "fk")
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
			mine := filepath.Join(base, "mine")
			require.NoError(t, os.Mkdir(mine, 0o700))
			taken := filepath.Join(base, fmt.Sprintf("futura-objects-%d", os.Getuid()))
			require.NoError(t, take(taken, mine))
			first, err := listenLocal(base)
			require.NoError(t, err)
			second, err := listenLocal(base)
			require.NoError(t, err)
			dir := filepath.Dir(first.Addr().String())
			require.NotEqual(t, taken, dir)
			require.Equal(t, dir, filepath.Dir(second.Addr().String()), "workers share a directory")
			left, err := os.ReadDir(mine)
			require.NoError(t, err)
			require.Empty(t, left)
			require.NoError(t, first.Close())
			require.NoError(t, second.Close())
		})
	}
}

// TestASocketNeedsOneDirectoryOfSeveral has a base be gone, as the one of a session that has ended.
func TestASocketNeedsOneDirectoryOfSeveral(t *testing.T) {
	t.Parallel()
	base, err := os.MkdirTemp("", "fk")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
	gone := filepath.Join(base, "file", "gone")
	require.NoError(t, os.WriteFile(filepath.Dir(gone), nil, 0o600))
	l, err := listenLocal("", gone, base)
	require.NoError(t, err)
	require.Equal(t, base, filepath.Dir(filepath.Dir(l.Addr().String())))
	require.NoError(t, l.Close())
	_, err = listenLocal("", gone)
	require.ErrorContains(t, err, gone)
	require.ErrorContains(t, err, "set XDG_RUNTIME_DIR or TMPDIR")
}

func TestObjectsBeyondThisMachineNeedPlainText(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		k, err := newKeeper(nil, ObjectOptions{Memory: 1 << 20, Listen: address}, true)
		require.ErrorIs(t, err, peer.ErrInsecure, address)
		require.ErrorContains(t, err, "--object-plain-text")
		require.Nil(t, k)
	}
	for _, o := range []ObjectOptions{
		{Memory: 1 << 20, Listen: "127.0.0.1:0"}, {Memory: 1 << 20, Listen: "0.0.0.0:0", PlainText: true},
	} {
		k, err := newKeeper(nil, o, true)
		require.NoError(t, err)
		require.Len(t, k.listens, 2)
		require.NoError(t, k.close())
	}
}
