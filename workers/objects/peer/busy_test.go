package peer

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/bubble"
)

// TestAServerIsBusyBeforeItsClientsGiveUp has all places for pieces be taken.
func TestAServerIsBusyBeforeItsClientsGiveUp(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		o := ServerOptions{}.withDefaults()
		client, cancel := context.WithTimeout(t.Context(), o.PieceTimeout-time.Second)
		defer cancel()
		require.False(t, (&link{server: &server{options: o}}).waitForBuffer(client))
		require.NoError(t, client.Err())
	})
}
