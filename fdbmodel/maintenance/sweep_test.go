package maintenance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestABadKeyHoldsUpNoSweep puts one before chunks that nothing refers to.
func TestABadKeyHoldsUpNoSweep(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	keys := s.C.Keys()
	id := s.Submit()
	shard := id.Shard(keys.Shards)
	bad := append(keys.ChunksOf(shard), 0x01)
	_, err := s.C.Transact(s.Ctx, kv.Options{}, func(tx kv.Attempt) error {
		tx.Set(bad, []byte("bad"))
		tx.Set(keys.Chunk(id, layout.ChunkRef{Kind: layout.ChunkArgs, Token: "lost"}, 0), []byte("piece"))
		return nil
	})
	require.NoError(t, err)
	s.Clock.Advance(2 * time.Hour)
	var cursor []byte
	all := 0
	for first := true; first || cursor != nil; first = false {
		next, removed, err := maintenance.Of(s.C).SweepChunks(s.Ctx, shard, cursor)
		require.NoError(t, err)
		cursor, all = next, all+removed
	}
	require.Equal(t, 1, all)
}
