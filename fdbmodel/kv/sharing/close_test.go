package sharing_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/sharing"
)

// writerFunc is a writer.
type writerFunc func(line string)

func (f writerFunc) Write(line []byte) (int, error) {
	f(string(line))
	return len(line), nil
}

// closing bounds a close, which takes milliseconds. A fault that has it wait forever is noticed soon.
const closing = 20 * time.Second

// requireClosed waits for a close that is under way. A test that fails does not wait for it any more.
func requireClosed(t *testing.T, closed <-chan error) {
	t.Helper()
	select {
	case err := <-closed:
		require.NoError(t, err)
	case <-time.After(closing):
		require.Fail(t, "the close does not end")
	}
}

// beginClose closes a store at the side.
func beginClose(db *sharing.Database) <-chan error {
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	return closed
}

// TestACloseDuringATakeover closes a follower that has just opened the store.
func TestACloseDuringATakeover(t *testing.T) {
	t.Parallel()
	dir := place(t)
	first := open(t, dir, sharing.Options{})
	put(t, first, "a")
	takes, goOn := make(chan struct{}), make(chan struct{})
	log := slog.New(slog.NewTextHandler(writerFunc(func(line string) {
		if strings.Contains(line, "took the store over") {
			close(takes)
			<-goOn
		}
	}), nil))
	second, err := sharing.Open(t.Context(), dir, sharing.Options{Logger: log})
	require.NoError(t, err)
	requireClosed(t, beginClose(first))
	<-takes
	closed := beginClose(second)
	require.Eventually(t, func() bool {
		_, err := second.Begin(kv.Options{}).Get([]byte("a")).Wait(t.Context())
		return err != nil && !kv.Retryable(err)
	}, patience, time.Millisecond)
	close(goOn)
	requireClosed(t, closed)
	third := open(t, dir, sharing.Options{Wait: time.Millisecond})
	require.True(t, third.IsOwner())
	put(t, third, "b")
}
