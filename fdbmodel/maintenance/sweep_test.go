package maintenance_test

import (
	"bytes"
	"fmt"
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

// TestAllSessionsAreFound has more of them in a shard than one transaction reads, and a bad key before them.
func TestAllSessionsAreFound(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	keys := s.C.Keys()
	want := map[layout.SessionID][]byte{}
	_, err := s.C.Transact(s.Ctx, kv.Options{}, func(tx kv.Attempt) error {
		tx.Set(append(keys.Shard(0, layout.SubSessions), 0x01), []byte("bad"))
		for n := 0; len(want) < 2001; n++ {
			session := layout.SessionID(fmt.Sprintf("session-%d", n))
			if key := keys.Session(session); bytes.HasPrefix(key, keys.Shard(0, layout.SubSessions)) {
				want[session] = []byte{byte(n)}
				tx.Set(key, want[session])
			}
		}
		return nil
	})
	require.NoError(t, err)
	found, err := maintenance.Of(s.C).Sessions(s.Ctx)
	require.NoError(t, err)
	require.Equal(t, want, found)
}
