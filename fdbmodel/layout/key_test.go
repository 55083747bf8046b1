package layout_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// TestKeysLieInTheirShard moves a key of each kind to another shard.
func TestKeysLieInTheirShard(t *testing.T) {
	t.Parallel()
	k := layout.NewKeyspace("test")
	k.Shards = 16
	var anywhere []string
	for _, golden := range modeltest.GoldenKeys(k) {
		key := keyspace.Table().Parse(golden.Key)
		require.True(t, k.Holds(&key), golden.Name)
		if !key.Kind.Sharded {
			continue
		}
		behind := golden.Key[len(tuple.AppendInt(bytes.Clone(k.Prefix), int64(key.Shard))):]
		moved := func(shard int) layout.Key {
			return keyspace.Table().Parse(append(tuple.AppendInt(bytes.Clone(k.Prefix), int64(shard)), behind...))
		}
		other, beyond := moved((key.Shard+1)%k.Shards), moved(k.Shards)
		require.Equal(t, key.Kind, other.Kind)
		require.False(t, k.Holds(&beyond), golden.Name)
		if k.Holds(&other) {
			anywhere = append(anywhere, key.Kind.Name)
		}
	}
	require.ElementsMatch(t, []string{"done", layout.KeyCount}, anywhere)
}

// TestSpansHoldEveryKey checks that the spans adjoin, and that each kind of key
// is read in pages that fit its values.
func TestSpansHoldEveryKey(t *testing.T) {
	t.Parallel()
	k := layout.NewKeyspace("test")
	k.Shards = 16
	spans := keyspace.Table().Spans(k)
	require.Equal(t, k.All(), kv.Range{Begin: spans[0].Begin, End: spans[len(spans)-1].End})
	for i := range spans[1:] {
		require.Equal(t, spans[i].End, spans[i+1].Begin)
		require.LessOrEqual(t, spans[i].Shard, spans[i+1].Shard)
	}
	for _, golden := range modeltest.GoldenKeys(k) {
		key := keyspace.Table().Parse(golden.Key)
		at := slices.IndexFunc(spans, func(s layout.Span) bool { return s.Contains(golden.Key) })
		require.Equal(t, keyspace.Table().Page(key.Kind), spans[at].Page, golden.Name)
		if key.Shard >= 0 {
			require.Equal(t, key.Shard, spans[at].Shard, golden.Name)
		}
		if spans[at].Subspace != "" {
			require.Equal(t, key.Subspace, spans[at].Subspace)
		}
	}
}

func TestEntityIsUpToTheFirstPart(t *testing.T) {
	t.Parallel()
	k := layout.NewKeyspace("test")
	k.Shards = 16
	for _, key := range [][]byte{
		k.Spec(modeltest.GoldenID), k.State(modeltest.GoldenID, "unheard"), k.Row(modeltest.GoldenID),
	} {
		parsed := keyspace.Table().Parse(key)
		require.Equal(t, k.Row(modeltest.GoldenID), parsed.Entity())
	}
	for _, key := range [][]byte{k.Config(), k.Shard(3, layout.SubFutures), []byte("foreign"), {}} {
		parsed := keyspace.Table().Parse(key)
		require.Equal(t, key, parsed.Entity())
	}
}
