package fdbmodel

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Counts are the futures of a cluster by queue, group and state, kept by
// counters that change with the futures.
type Counts map[CountKey]int64

// CountKey is what futures are counted by.
type CountKey struct {
	Queue, Group string
	State        State
}

// Total returns how many futures are in a state.
func (c Counts) Total(s State) int64 {
	n := int64(0)
	for k, v := range c {
		if k.State == s {
			n += v
		}
	}
	return n
}

// Counts reads the counters. They cost the same to read however many futures
// there are. Shards are read at slightly different versions unless the store is
// small.
func (c *Cluster) Counts(ctx context.Context) (Counts, error) {
	counts := Counts{}
	for shard := range c.config.Shards {
		prefix := c.keys.countsOf(shard)
		err := c.eachKey(ctx, kv.Prefix(prefix), func(item kv.KeyValue) error {
			key, n, err := parseCount(prefix, item)
			counts[key] += n
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return counts, nil
}

func parseCount(prefix []byte, item kv.KeyValue) (CountKey, int64, error) {
	rest := tuple.NewReader(item.Key[len(prefix):])
	key := CountKey{Queue: rest.Text(), Group: rest.Text()}
	state, err := ParseState(rest.Text())
	key.State = state
	if err != nil || rest.Err() != nil || len(item.Value) != 8 {
		return key, 0, fmt.Errorf("%s: %w: not a counter", tuple.String(item.Key), ErrBadRecord)
	}
	return key, int64(binary.LittleEndian.Uint64(item.Value)), nil
}
