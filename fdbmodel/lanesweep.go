package fdbmodel

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/shards"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/internal/clock"
)

// lanesAtOnce is how many lanes one transaction of a janitor looks at.
const lanesAtOnce = 32

// AdmitDue admits futures to lanes that their rate held back until now, at most a batch
// of lanes. It returns how many lanes it looked at, and when to call it again: at once
// if more may be due, else when the next one is; the zero time if none is. A wrong clock
// admits early or late by as much. An unknown commit is retried and harmless.
func (c *Cluster) AdmitDue(ctx context.Context) (lanes int, next time.Time, err error) {
	var then postCommit
	var result kv.Result
	err = aroundDamage(func(avoid avoidance) (err error) {
		result, err = c.Transact(ctx, kv.Options{Tag: "futura-lanes"}, func(tx kv.Attempt) error {
			lanes, next, then, err = c.admitDue(ctx, tx, avoid)
			return err
		})
		return err
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	c.follow(ctx, result.Version, then)
	return lanes, next, nil
}

func (c *Cluster) admitDue(ctx context.Context, tx kv.Attempt, avoid avoidance,
) (lanes int, next time.Time, then postCommit, err error) {
	now := c.clock.Now()
	w, scan := c.write(tx), shards.Read(tx.Snapshot(), c.config.Shards, c.keys.LanesDueOf, lanesAtOnce+1)
	for lanes < lanesAtOnce {
		item, skip, err := scan.Next(ctx)
		if err != nil {
			return 0, next, then, err
		}
		if item.Key == nil {
			break
		}
		rest := tuple.NewReader(item.Key[skip:])
		at, lane := rest.Int(), layout.Lane{Kind: rest.Text(), Key: rest.Text()}
		switch {
		case rest.Done() != nil || avoid.has(lane): // an audit reports it
		case at > layout.Millis(now):
			next = clock.Earlier(next, time.UnixMilli(at))
			scan.Leave()
		default:
			w.lanes.Of(lane).Due = item.Key
			lanes++
		}
	}
	if err := w.Flush(ctx); err != nil {
		return 0, next, then, err
	}
	if w.lanes.Due != 0 {
		next = clock.Earlier(next, time.UnixMilli(w.lanes.Due))
	}
	if lanes == lanesAtOnce {
		next = now
	}
	return lanes, next, w.postCommit(), nil
}

// SweepLanes has the lanes of kinds whose settings have changed admit what they have
// room for since then. Several processes may run it; whoever is first at the end ends
// it. An unknown commit is retried and harmless. What can't be read does not hold up other
// kinds: their error comes after those.
func (c *Cluster) SweepLanes(ctx context.Context) error {
	kinds, unreadable := c.LaneKinds(ctx)
	if unreadable != nil && !layout.IsUnreadable(unreadable) {
		return unreadable
	}
	errs := []error{unreadable}
	// In an order that a simulation repeats.
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		k := kinds[name]
		if k.Sweep == 0 {
			continue
		}
		err := c.sweepKind(ctx, name, k.Sweep)
		if err != nil && !layout.IsUnreadable(err) {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// sweepKind is SweepLanes for one kind.
func (c *Cluster) sweepKind(ctx context.Context, name string, sweep int64) error {
	for shard := range c.config.Shards {
		if err := c.sweepShard(ctx, name, shard); err != nil {
			return err
		}
	}
	return c.endSweep(ctx, name, sweep)
}

// sweepShard looks at the lanes of a kind in a shard that have futures in line, or have
// used up their rate.
func (c *Cluster) sweepShard(ctx context.Context, name string, shard int) error {
	lanes := kv.Prefix(tuple.AppendString(c.keys.LanesOf(shard), name))
	for more := true; more; {
		var then postCommit
		var next []byte
		var result kv.Result
		err := aroundDamage(func(avoid avoidance) (err error) {
			result, err = c.Transact(ctx, kv.Options{Tag: "futura-lanes"}, func(tx kv.Attempt) error {
				next, more, then, err = c.sweepPage(ctx, tx, lanes, name, avoid)
				return err
			})
			return err
		})
		if err != nil {
			return err
		}
		c.follow(ctx, result.Version, then)
		lanes.Begin = next
	}
	return nil
}

// sweepPage looks at the next lanes of a range, and returns where the others begin.
func (c *Cluster) sweepPage(ctx context.Context, tx kv.Attempt, lanes kv.Range, name string, avoid avoidance,
) (next []byte, more bool, then postCommit, err error) {
	page, err := tx.Snapshot().GetRange(lanes, kv.RangeOptions{Limit: 8 * lanesAtOnce}).Wait(ctx)
	if err != nil {
		return nil, true, then, err
	}
	w, now := c.write(tx), c.clock.Now().UnixMicro()
	next, more = lanes.End, page.More
	if more {
		next = kv.After(page.Items[len(page.Items)-1].Key)
	}
	for _, item := range page.Items {
		var record layout.LaneRecord
		if layout.Decode(item.Key, item.Value, &record) != nil || !record.Lined && record.Spent <= now {
			continue // unreadable ones are an audit's
		}
		key := layout.ParseKey(item.Key)
		lane := layout.Lane{Kind: name, Key: key.Text("key")}
		if avoid.has(lane) {
			continue
		}
		if w.lanes.Len() == lanesAtOnce {
			next, more = item.Key, true
			break
		}
		w.lanes.Of(lane).Sweep = true
	}
	if err := w.Flush(ctx); err != nil {
		return nil, true, then, err
	}
	return next, more, w.postCommit(), nil
}

// endSweep says that all lanes of a kind were looked at since a change of its settings.
func (c *Cluster) endSweep(ctx context.Context, name string, sweep int64) error {
	key := c.keys.LaneKind(name)
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-lanes"}, func(tx kv.Attempt) error {
		value, err := tx.Get(key).Wait(ctx)
		if err != nil || value == nil {
			return err
		}
		var k layout.LaneKind
		if err := layout.DecodeLaneKind(key, value, &k); err != nil || k.Sweep != sweep {
			return err
		}
		k.Sweep = 0
		tx.Set(key, layout.Encode(&k))
		return nil
	})
	return err
}
