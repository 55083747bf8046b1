package batchtest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
)

// testChunks checks what is kept of a chunk: who had it, and from when to when.
func testChunks(f *fixture) {
	id := f.create(2, lists(4))
	named := f.newChunk(id, "w1")
	named.Peer = "12D3KooWNbW985igznpKwHAf1pxByyNeipQFtEFLynNrWhsEHkL9"
	require.Equal(f, []int{0, 1}, f.give(&named, []int{0, 1}))
	plain := f.assign(id, "w2", 2)
	require.Len(f, f.chunks(id), 2)
	got := f.chunk(named)
	require.Equal(f, "w1", got.Worker)
	require.Equal(f, named.Peer, got.PeerID())
	require.Equal(f, 2, got.Items)
	require.Equal(f, batch.InProgress, got.Status)
	f.requireTime(f.now, got.CreatedAt)
	require.True(f, got.FinishedAt.IsZero())
	require.Equal(f, "w2", f.chunk(plain).PeerID())

	f.end(named, f.succeeds(0), f.succeeds(1))
	f.settle(id)
	f.requireTime(f.now, f.chunk(named).FinishedAt)
	require.True(f, f.chunk(plain).FinishedAt.IsZero())
	before := f.chunk(plain).CreatedAt.Add(-time.Hour)
	require.Equal(f, 1, f.release(plain))
	require.True(f, f.chunk(plain).FinishedAt.After(before), "a chunk whose worker was lost is over")

	// The worker gets more under the same chunk.
	require.Equal(f, []int{3}, f.give(&named, []int{3}))
	require.True(f, f.chunk(named).FinishedAt.IsZero())
	require.Equal(f, named.Peer, f.chunk(named).Peer)
}
