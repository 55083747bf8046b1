package index

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Counters count the futures of each queue, owner and state.
type Counters struct {
	*Set
	counts map[layout.ShardCount]int64
}

// Update implements Index.
func (c *Counters) Update(before, after *layout.Row) {
	if before != nil && after != nil && before.State() == after.State() {
		return
	}
	if before != nil {
		c.add(before.ID, before.Spec.Queue, before.Spec.Owner, before.State(), -1)
	}
	if after != nil {
		c.add(after.ID, after.Spec.Queue, after.Spec.Owner, after.State(), 1)
	}
}

// Move counts a future that changes its state alone.
func (c *Counters) Move(id layout.ID, queue, owner string, from, to layout.State) {
	c.add(id, queue, owner, from, -1)
	c.add(id, queue, owner, to, 1)
}

func (c *Counters) add(id layout.ID, queue, owner string, s layout.State, n int64) {
	if c.counts == nil {
		c.counts = map[layout.ShardCount]int64{}
	}
	key := layout.CountKey{Queue: queue, Owner: owner, State: s}
	c.counts[layout.ShardCount{Shard: id.Shard(c.Keys.Shards), CountKey: key}] += n
}

// Flush implements Index.
func (c *Counters) Flush(context.Context) error {
	for k, n := range c.counts {
		if n != 0 {
			c.Tx.Atomic(kv.Add, c.Keys.Count(k.Shard, k.Queue, k.Owner, k.State), layout.EncodeCounter(n))
		}
	}
	return nil
}
