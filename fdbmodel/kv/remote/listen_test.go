package remote

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/socket"
)

func TestListenUnix(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	l, err := ListenUnix(path)
	require.NoError(t, err)
	require.Equal(t, path, l.Addr().String())
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeSocket|0o600, info.Mode())
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1)

	_, err = ListenUnix(path)
	require.ErrorIs(t, err, kv.ErrStoreInUse)
	require.NoError(t, l.Close())
	require.NoFileExists(t, path)
}

func TestListenUnixReplacesWhatNobodyAnswersOn(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	stale.SetUnlinkOnClose(false)
	require.NoError(t, stale.Close())
	l, err := ListenUnix(path)
	require.NoError(t, err)
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	require.NoError(t, conn.Close())

	// A listener leaves alone what has taken its socket's place.
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, l.Close())
	require.FileExists(t, path)
	_, err = ListenUnix(path)
	require.ErrorIs(t, err, ErrBadAddress)
	require.ErrorContains(t, err, "is not a socket")
}

func TestListenUnixRefusesPathsThatAreTooLong(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/" + strings.Repeat("x", socket.MaxPath)} {
		_, err := ListenUnix(path)
		require.ErrorIs(t, err, ErrBadAddress)
		_, err = Open(t.Context(), Address{Network: "unix", Target: path}, Options{})
		require.ErrorIs(t, err, ErrBadAddress)
	}
	_, err := ListenUnix(filepath.Join(filepath.Dir(socketPath(t)), "missing", "s"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestParseAddress(t *testing.T) {
	t.Parallel()
	for text, leaves := range map[string]bool{
		"unix:a/b:c": false, "tcp:127.0.0.1:1": false, "tcp:[::1]:1": false, "tcp:localhost:1": false,
		"tcp:example.org:1": true, "tcp:0.0.0.0:1": true, "tcp::1": true, "tcp:[::]:1": true, "tcp:10.0.0.1:1": true,
	} {
		a, err := ParseAddress(text)
		require.NoError(t, err, text)
		require.Equal(t, text, a.String())
		require.Equal(t, leaves, a.leavesMachine(), text)
	}
	for _, text := range []string{"", "unix", "unix:", "tcp:", "tcp:x", "tcp:x:", "udp:x:1", "/a"} {
		_, err := ParseAddress(text)
		require.ErrorIs(t, err, ErrBadAddress, text)
	}
}
