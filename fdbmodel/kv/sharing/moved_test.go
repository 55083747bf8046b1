package sharing_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/sharing"
)

// takeovers returns a logger, and the lines about takeovers that it gets.
func takeovers() (*slog.Logger, <-chan string) {
	lines := make(chan string, 100)
	return slog.New(slog.NewTextHandler(writerFunc(func(line string) {
		if strings.Contains(line, "took the store over") || strings.Contains(line, "taken over") {
			lines <- line
		}
	}), nil)), lines
}

func says(t *testing.T, lines <-chan string, want string) {
	t.Helper()
	select {
	case line := <-lines:
		require.Contains(t, line, want)
	case <-time.After(patience):
		require.Fail(t, "a takeover was not logged")
	}
}

// TestATakeoverMakesNoStore moves the store away and ends its owner: the other process waits, also while another
// store is in its place, and takes over what it had followed once that is back.
func TestATakeoverMakesNoStore(t *testing.T) {
	t.Parallel()
	dir := place(t)
	first, err := sharing.Open(t.Context(), dir, sharing.Options{})
	require.NoError(t, err)
	log, lines := takeovers()
	second := open(t, dir, sharing.Options{Logger: log})
	put(t, second, "a")
	require.NoError(t, os.Rename(dir, dir+".away"))
	_ = first.Close()
	says(t, lines, "has no store any more")
	require.NoDirExists(t, dir)
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, open(t, dir+".new", sharing.Options{}).Close())
	require.NoError(t, os.Remove(dir), "nothing was written to an empty directory")
	require.NoError(t, os.Rename(dir+".new", dir))
	says(t, lines, "has another store than before")
	require.NoError(t, os.Rename(dir, dir+".new"))
	require.False(t, second.IsOwner())
	require.NoError(t, os.Rename(dir+".away", dir))
	put(t, second, "b")
	require.True(t, second.IsOwner())
	value, err := second.Begin(kv.Options{}).Get([]byte("a")).Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, "value", string(value))
}
