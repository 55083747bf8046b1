package held

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/workers/objects/peer"
)

// TestConnectionsToThePresentWorkersAreKept meets more workers one after the other than it keeps connections to:
// those that it met last have them, and those in use stay open.
func TestConnectionsToThePresentWorkersAreKept(t *testing.T) {
	t.Parallel()
	var r Reader
	meet := func(worker int) (*peer.Client, func()) {
		c, done, err := r.client(fmt.Sprintf("%032d", worker))
		require.NoError(t, err)
		return c, done
	}
	used, stop := meet(0)
	for worker := 1; worker <= 2*maxClients; worker++ {
		first, done := meet(worker)
		done()
		again, done := meet(worker)
		done()
		require.Same(t, first, again)
	}
	again, done := meet(0)
	done()
	require.Same(t, used, again)
	stop()
	require.NoError(t, r.Close())
}
