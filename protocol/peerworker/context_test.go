package peerworker

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// TestWhatFunctionsAreTold has a function ask for the future that it runs: it is the head's,
// with the head's attempt, whether the worker has a directory or not. There is no client:
// futures that a function submitted to the worker's own store would be seen by nobody.
func TestWhatFunctionsAreTold(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]bool{"memory": false, "directory": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, h, o := withHead(t)
			if state {
				o.State = t.TempDir()
			}
			w, err := New(o)
			require.NoError(t, err)
			told, clients := make(chan workers.Info, 1), make(chan error, 1)
			require.NoError(t, w.Register("ask", func(ctx context.Context, args []byte) ([]byte, error) {
				info, _ := workers.InfoFrom(ctx)
				_, err := futures.FromContext(ctx)
				told <- info
				clients <- err
				return args, nil
			}))
			start(t, w, n)
			order := goOrder("ask", "a")
			order.Items[0].Attempt = 3
			require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
			h.all(order.ChunkID, 1)
			info := <-told
			require.Equal(t, order.Items[0].ID, info.ID.String())
			require.Equal(t, 3, info.Attempt)
			require.Zero(t, info.Attempts, "the head does not tell it")
			require.Equal(t, "go:ask", info.Function)
			require.ErrorIs(t, <-clients, futures.ErrOutsideFunction)
		})
	}
}
