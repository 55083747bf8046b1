package peerhead

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/workers"
)

// TestKeptResultsAreShared has one peer fill its part of what is kept. Others have room, and
// all is dropped in time.
func TestKeptResultsAreShared(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	fake := clock.NewVirtual(now)
	k := newKeptResults(8*layout.MaxPut, fake)
	out := workers.RemoteOutcome{Value: make([]byte, layout.MaxPut/2)}
	put := func(from PeerID, number int) bool { return k.put(attempt{number: number}, from, out) }
	n := 0
	for n < 100 && put("greedy", n) {
		n++
	}
	require.Equal(t, 3, n, "the part of one peer")
	require.True(t, put("honest", 100))
	_, found := k.take(layout.ID{}, 0)
	require.True(t, found)
	require.True(t, put("greedy", 101), "what was taken leaves room")
	k.sweep(now.Add(keptFor - 1))
	require.Len(t, k.by, 4)
	k.sweep(now.Add(keptFor))
	require.Empty(t, k.by)
	require.Empty(t, k.ofPeer)
	require.Zero(t, k.size)
}
