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

// holdTakeover returns a logger that holds up who takes a store over, once that serves it and before it is the owner:
// takes is closed then, and goOn ends it.
func holdTakeover() (log *slog.Logger, takes, goOn chan struct{}) {
	takes, goOn = make(chan struct{}), make(chan struct{})
	return slog.New(slog.NewTextHandler(writerFunc(func(line string) {
		if strings.Contains(line, "took the store over") {
			close(takes)
			<-goOn
		}
	}), nil)), takes, goOn
}

// TestATakeoverDoesNotReachItself has a process serve a store and not know yet that it is the owner: others use the
// store, and it does so as the owner only.
func TestATakeoverDoesNotReachItself(t *testing.T) {
	t.Parallel()
	dir := place(t)
	first := open(t, dir, sharing.Options{})
	log, takes, goOn := holdTakeover()
	second := open(t, dir, sharing.Options{Logger: log})
	requireClosed(t, beginClose(first))
	<-takes
	third := open(t, dir, sharing.Options{})
	put(t, third, "a")
	require.NoError(t, third.Reach(t.Context()))
	reached := second.Reach(t.Context())
	close(goOn)
	require.ErrorIs(t, reached, sharing.ErrItself)
	put(t, second, "b")
	require.True(t, second.IsOwner())
	require.False(t, third.IsOwner())
}

// TestACloseDuringATakeover closes a follower that has just opened the store.
func TestACloseDuringATakeover(t *testing.T) {
	t.Parallel()
	dir := place(t)
	first := open(t, dir, sharing.Options{})
	put(t, first, "a")
	log, takes, goOn := holdTakeover()
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
