//go:build unix

package top

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/futures"
)

// TestRunEndsWithItsContext ends screens as they begin. The race detector finds one that closes its terminal while
// that is still read.
func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	db := embedded.OpenMemory(embedded.Options{})
	client, err := futures.New(t.Context(), db, futures.Options{Cluster: "shop"})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, client.Close(context.Background()))
		require.NoError(t, db.Close())
	})
	for range 30 {
		screen, terminal, err := pty.Open()
		require.NoError(t, err)
		drawn := make(chan struct{})
		go func() {
			defer close(drawn)
			_, _ = io.Copy(io.Discard, screen) // until its other end is closed
		}()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Run(ctx, terminal, terminal, NewReader(client), 10*time.Millisecond) }()
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, terminal.Close())
		<-drawn
		require.NoError(t, screen.Close())
	}
}
