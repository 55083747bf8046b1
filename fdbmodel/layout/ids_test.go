package layout_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel/layout"
)

func TestBatchItemIDsHoldTheirIndex(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		batch, index := rapid.String().Draw(t, "batch"), rapid.IntRange(0, 1<<31-1).Draw(t, "index")
		id := layout.BatchItemID(batch, index)
		require.Equal(t, index, layout.BatchItemIndex(id))
		require.Equal(t, id, layout.BatchItemID(batch, index))
		u := uuid.UUID(id)
		require.EqualValues(t, 8, u.Version())
		require.Equal(t, uuid.RFC4122, u.Variant())
		require.NotEqual(t, id, layout.BatchItemID(batch+"x", index))
	})
	shards := map[int]int{}
	for i := range 10_000 {
		id := layout.BatchItemID("b", i)
		require.Equal(t, layout.BatchItemID("b", i/layout.ItemBlock*layout.ItemBlock).Shard(16), id.Shard(16),
			"neighbours lie together")
		shards[id.Shard(16)]++
	}
	require.Len(t, shards, 16, "and all shards are used")
}

// TestIDsKeepTheirOrderWhenTheClockIsSetBack draws in one process.
func TestIDsKeepTheirOrderWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	source := layout.IdSource{Random: rand.Reader}
	last, now := "", time.UnixMilli(1_900_000_000_000)
	for _, n := range []int{0, -1} {
		none, err := source.Draw(now, 4, n)
		require.NoError(t, err)
		require.Empty(t, none)
	}
	for _, jump := range []time.Duration{0, time.Hour, -5 * time.Hour, time.Millisecond, -time.Hour} {
		now = now.Add(jump)
		ids, err := source.Draw(now, 4, 3)
		require.NoError(t, err)
		for _, id := range ids {
			require.Less(t, last, id.String())
			last = id.String()
		}
	}
}
