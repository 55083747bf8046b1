package layout

import (
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// The maximum number of keys in one page of a read.
const (
	pageKeys      = 500
	largePageKeys = 10 // in a subspace whose values are large
)

// Span is a range of keys of which Page are read at a time.
type Span struct {
	kv.Range
	Page int
	// Shard is the shard of the last keys, -1 before the first shard and the
	// number of shards behind the last.
	Shard int
	// Subspace is the only one in the range if its values are large, else empty.
	Subspace string
}

// Spans divides all keys of a cluster into ranges, in the order of the keys.
func (t *Table) Spans(k Keyspace) []Span {
	var spans []Span
	at := k.Prefix
	until := func(end []byte, shard, page int, subspace string) {
		spans = append(spans, Span{kv.Range{Begin: at, End: end}, page, shard, subspace})
		at = end
	}
	large := func(prefix []byte, shard int) {
		for _, sub := range t.largeSubspaces(shard >= 0) {
			r := kv.Prefix(tuple.AppendString(slices.Clip(prefix), sub))
			until(r.Begin, shard, pageKeys, "")
			until(r.End, shard, largePageKeys, sub)
		}
	}
	large(k.Prefix, -1)
	for shard := range k.Shards {
		large(k.shardPrefix(shard), shard)
		until(kv.AfterPrefix(k.shardPrefix(shard)), shard, pageKeys, "")
	}
	until(k.All().End, k.Shards, pageKeys, "")
	return spans
}

// largeSubspaces returns the subspaces whose values are large, in the order of
// the keys.
func (t *Table) largeSubspaces(sharded bool) (large []string) {
	for i := range t.kinds {
		k := &t.kinds[i]
		if k.Sharded == sharded && (k.Format == FormatPiece || k.Format == FormatNotices) {
			large = append(large, k.Subspace)
		}
	}
	slices.Sort(large)
	return slices.Compact(large)
}

// Page returns how many keys of a kind's subspace are read at a time.
func (t *Table) Page(k *KeyKind) int {
	if slices.Contains(t.largeSubspaces(k.Sharded), k.Subspace) {
		return largePageKeys
	}
	return pageKeys
}
