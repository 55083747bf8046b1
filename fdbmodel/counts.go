package fdbmodel

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Counts reads the counters. The cost of reading them does not depend on the
// number of futures. Shards are read at slightly different versions unless the
// store is small.
func (c *Cluster) Counts(ctx context.Context) (layout.Counts, error) {
	counts := layout.Counts{}
	for shard := range c.config.Shards {
		prefix := c.keys.Shard(shard, layout.SubCounts)
		err := c.EachKey(ctx, kv.Prefix(prefix), func(item kv.KeyValue) error {
			key, n, err := layout.ParseCount(prefix, item)
			counts[key] += n
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return counts, nil
}
