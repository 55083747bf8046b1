package socket_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/socket"
)

// place returns a directory whose paths are short enough for a socket.
func place(t *testing.T) string {
	dir, err := os.MkdirTemp("", "fs")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func TestListenIsForItsUserAlone(t *testing.T) {
	t.Parallel()
	dir := place(t)
	path := filepath.Join(dir, "s")
	l, err := socket.Listen(filepath.Join(dir, "h"), path)
	require.NoError(t, err)
	at, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.ModeSocket|0o600, at.Mode())
	require.NoFileExists(t, filepath.Join(dir, "h"))
	require.Equal(t, path, l.Addr().String())
	answers, err := socket.Answers(path)
	require.NoError(t, err)
	require.True(t, answers)
	require.NoError(t, l.Close())
	require.NoFileExists(t, path)
}

// A listener that was replaced leaves the socket of its successor alone.
func TestCloseLeavesAnothersSocket(t *testing.T) {
	t.Parallel()
	dir := place(t)
	path := filepath.Join(dir, "s")
	first, err := socket.Listen(filepath.Join(dir, "h"), path)
	require.NoError(t, err)
	second, err := socket.Listen(filepath.Join(dir, "h"), path)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	answers, err := socket.Answers(path)
	require.NoError(t, err)
	require.True(t, answers)
	require.NoError(t, second.Close())
	_, err = socket.Answers(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestNobodyAnswersAtADeadSocket(t *testing.T) {
	t.Parallel()
	dir := place(t)
	path := filepath.Join(dir, "s")
	l, err := socket.Listen(filepath.Join(dir, "h"), filepath.Join(dir, "other"))
	require.NoError(t, err)
	require.NoError(t, os.Rename(filepath.Join(dir, "other"), path))
	require.NoError(t, l.Close())
	answers, err := socket.Answers(path)
	require.NoError(t, err)
	require.False(t, answers)
}

func TestListenNeedsItsDirectory(t *testing.T) {
	t.Parallel()
	dir := place(t)
	_, err := socket.Listen(filepath.Join(dir, "h"), filepath.Join(dir, "missing", "s"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestLeavesMachine(t *testing.T) {
	t.Parallel()
	for target, leaves := range map[string]bool{
		"127.0.0.1:1": false, "[::1]:1": false, "localhost:1": false,
		"10.0.0.1:1": true, "0.0.0.0:1": true, ":1": true, "example.com:1": true, "broken": true,
	} {
		assert.Equal(t, leaves, socket.LeavesMachine("tcp", target), target)
	}
	assert.False(t, socket.LeavesMachine("unix", "/run/futura"))
}
