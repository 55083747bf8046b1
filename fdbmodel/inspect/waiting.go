package inspect

import (
	"context"
	"slices"

	"github.com/futura-run/futura/fdbmodel/keyspace"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// waiting returns all that is in the state of the filter, as one stream, if that is
// one whose futures have keys in a place of their own, and these are few. Otherwise it
// returns nil.
func (n *newest) waiting(ctx context.Context) ([]*stream, error) {
	keys := n.cluster.Keys()
	var ids []layout.ID
	for shard := range n.cluster.Config().Shards {
		var places [][]byte
		switch n.filter.State {
		case layout.Claimed:
			places = [][]byte{keys.Shard(shard, layout.SubWorkers)}
		case layout.Delayed:
			places = [][]byte{keys.DelayedOf(shard)}
		case layout.Ready:
			places = [][]byte{keys.Shard(shard, layout.SubReady), keys.Shard(shard, layout.SubAssigned),
				keys.Shard(shard, layout.SubLine)}
			if n.filter.Queue != "" {
				places[0] = keys.ReadyQueue(shard, n.filter.Queue)
			}
		default:
			return nil, nil
		}
		for _, place := range places {
			items, more, err := readSome(ctx, n.cluster, kv.Prefix(place), kv.RangeOptions{Limit: fewKeys + 1})
			if n.read.keys += len(items); err != nil || more || n.read.keys > fewKeys {
				return nil, err
			}
			for _, item := range items {
				ids = append(ids, futuresIn(item)...)
			}
		}
	}
	if len(ids) > fewKeys {
		return nil, nil
	}
	rows, _, err := readAll(ctx, n.cluster, ids)
	if err != nil {
		return nil, err
	}
	n.read.keys += len(rows)
	s := &stream{over: true}
	for i := range rows {
		e := entry{layout.AgeOf(rows[i].ID, rows[i].Spec), &rows[i]}
		if e.age.Compare(n.from) < 0 && e.age.Millis >= n.since() {
			s.buffer = append(s.buffer, e)
		}
	}
	slices.SortFunc(s.buffer, func(a, b entry) int { return b.age.Compare(a.age) })
	s.buffer = slices.CompactFunc(s.buffer, func(a, b entry) bool { return a.age == b.age })
	return []*stream{s}, nil
}

// futuresIn returns the futures that a key of a place names.
func futuresIn(item kv.KeyValue) []layout.ID {
	key := keyspace.Table().Parse(item.Key)
	switch {
	case key.Kind == nil:
		return nil
	case key.Kind.Name == layout.PlaceLine:
		var entry layout.LineEntry
		if layout.Decode(item.Key, item.Value, &entry) == nil {
			return []layout.ID{entry.ID}
		}
	case layout.IsPlace(key.Kind.Name):
		return []layout.ID{key.ID}
	case key.Kind.Name == layout.WorkerClaims:
		var batch layout.ClaimBatch
		if layout.Decode(item.Key, item.Value, &batch) == nil {
			return layout.UnpackIDs(batch.IDs)
		}
	}
	return nil
}
