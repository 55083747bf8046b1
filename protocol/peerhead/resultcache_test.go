package peerhead

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/workers"
)

// TestCachedResultsAreShared has one peer fill its part of what is kept. Others have room, and
// all is dropped in time.
func TestCachedResultsAreShared(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	fake := clock.NewVirtual(now)
	c := newResultCache(8*layout.MaxPut, fake)
	out := workers.RemoteOutcome{Value: make([]byte, layout.MaxPut/2)}
	put := func(from PeerID, number int) bool { return c.put(attempt{number: number}, from, out) }
	n := 0
	for n < 100 && put("greedy", n) {
		n++
	}
	require.Equal(t, 3, n, "the part of one peer")
	require.True(t, put("honest", 100))
	_, found := c.take(layout.ID{}, 0)
	require.True(t, found)
	require.True(t, put("greedy", 101), "what was taken leaves room")
	c.sweep(now.Add(cachedFor - 1))
	require.Len(t, c.by, 4)
	c.sweep(now.Add(cachedFor))
	require.Empty(t, c.by)
	require.Empty(t, c.ofPeer)
	require.Zero(t, c.size)
}
