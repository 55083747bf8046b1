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
	require.NoError(t, first.Close())
	<-takes
	closed := make(chan error, 1)
	go func() { closed <- second.Close() }()
	require.Eventually(t, func() bool {
		_, err := second.Begin(kv.Options{}).Get([]byte("a")).Wait(t.Context())
		return err != nil && !kv.Retryable(err)
	}, patience, time.Millisecond)
	close(goOn)
	select {
	case err := <-closed:
		require.NoError(t, err)
	case <-time.After(patience):
		require.Fail(t, "the close does not end")
	}
	third := open(t, dir, sharing.Options{Wait: time.Millisecond})
	require.True(t, third.IsOwner())
	put(t, third, "b")
}
