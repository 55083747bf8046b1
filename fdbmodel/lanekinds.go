package fdbmodel

import (
	"cmp"
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// SetLaneKind sets the settings of a kind of lanes. All processes obey them from the
// commit on; what is admitted stays so, and so does a pause of a kind that was set before.
// If they let lanes admit more than before, it admits what they have in line, as a
// janitor does if the caller dies. It returns
// ErrBadName, ErrBadConfig, ErrTooManyKinds for a new kind where there are
// layout.MaxLaneKinds, and ErrInUse if a total width is set or lifted while
// lanes of the kind have admitted futures or others in line: nobody has counted them. An
// unknown commit is retried and harmless.
func (c *Cluster) SetLaneKind(ctx context.Context, name string, k layout.LaneKind) error {
	if err := layout.CheckLaneKind(name); err != nil {
		return err
	}
	k = k.WithDefaults()
	if err := k.Validate(); err != nil {
		return fmt.Errorf("kind of lanes %s: %w", name, err)
	}
	return c.changeLaneKind(ctx, name, func(was *layout.LaneKind) (layout.LaneKind, error) {
		next := k
		if was != nil {
			next.Paused = was.Paused
		}
		return next, nil
	})
}

// PauseLaneKind keeps all lanes of a kind from admitting futures, or lets them go on. It
// returns ErrNotFound for a kind that was not set. An unknown commit is retried and
// harmless.
func (c *Cluster) PauseLaneKind(ctx context.Context, name string, paused bool) error {
	return c.changeLaneKind(ctx, name, func(was *layout.LaneKind) (layout.LaneKind, error) {
		if was == nil {
			return layout.LaneKind{}, unknownKind(name)
		}
		k := *was
		k.Paused = paused
		return k, nil
	})
}

func unknownKind(name string) error { return fmt.Errorf("kind of lanes %q: %w", name, ErrNotFound) }

func (c *Cluster) changeLaneKind(ctx context.Context, name string,
	change func(was *layout.LaneKind) (layout.LaneKind, error),
) error {
	key := c.keys.LaneKind(name)
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-lanes"}, func(tx kv.Attempt) error {
		value, err := tx.Get(key).Wait(ctx)
		if err != nil {
			return err
		}
		var was *layout.LaneKind
		if value != nil {
			was = &layout.LaneKind{}
			if err := layout.DecodeLaneKind(key, value, was); err != nil {
				return err
			}
		}
		k, err := change(was)
		if err != nil {
			return err
		}
		if was == nil {
			if err := c.requireRoomForKind(ctx, tx, name); err != nil {
				return err
			}
		}
		if was != nil && ((was.Total == 0) != (k.Total == 0) || was.Bundle != k.Bundle) {
			before := "its total width is set or lifted, or the function of its bundles is changed"
			if _, err := c.requireNoLanes(ctx, tx, name, before); err != nil {
				return err
			}
		}
		k.Sweep = 0
		if was != nil {
			if k.Sweep = was.Sweep; k == *was {
				return nil // who submits to its lanes would conflict
			}
			if admitsMore(was, &k) {
				k.Sweep = max(1, was.Sweep+1)
			}
		}
		tx.Set(key, layout.Encode(&k))
		return nil
	})
	if err != nil {
		return err
	}
	if err = c.SweepLanes(ctx); layout.IsUnreadable(err) {
		return nil // of any kind; the janitor says so, and an audit reports it
	}
	return err
}

// requireRoomForKind returns ErrTooManyKinds if a cluster has all the kinds of lanes that
// it may have. It conflicts with who makes another one.
func (c *Cluster) requireRoomForKind(ctx context.Context, tx kv.Reader, name string) error {
	page, err := tx.GetRange(kv.Prefix(c.keys.LaneKinds()), kv.RangeOptions{Limit: layout.MaxLaneKinds}).Wait(ctx)
	if err != nil || len(page.Items) < layout.MaxLaneKinds {
		return err
	}
	return fmt.Errorf("kind of lanes %s: %w: a cluster has at most %d: tell lanes of one kind apart by their keys, or "+
		"remove a kind that is not used", name, ErrTooManyKinds, layout.MaxLaneKinds)
}

// admitsMore reports whether lanes may have room by new settings that they had not by
// the old ones.
func admitsMore(was, k *layout.LaneKind) bool {
	return !k.Paused && (was.Paused || k.Width > was.Width || k.Total > was.Total || k.Rate != was.Rate ||
		k.Every != was.Every)
}

// RemoveLaneKind removes the settings of a kind of lanes, and the pauses of its lanes. It
// returns ErrNotFound, and ErrInUse while lanes of the kind have admitted futures or
// others in line, or while more than 1,000 lanes of a shard are paused. Futures
// of the kind that are blocked or delayed then get in line for lanes of width 1. An
// unknown commit is retried; a kind that is gone by then was removed.
func (c *Cluster) RemoveLaneKind(ctx context.Context, name string) error {
	key := c.keys.LaneKind(name)
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-lanes"}, func(tx kv.Attempt) error {
		value, err := tx.Get(key).Wait(ctx)
		if err != nil {
			return err
		}
		if value == nil {
			if tx.MaybeCommitted {
				return nil
			}
			return unknownKind(name)
		}
		idle, err := c.requireNoLanes(ctx, tx, name, "it is removed")
		if err != nil {
			return err
		}
		for _, lane := range idle {
			tx.Clear(lane)
		}
		tx.Clear(key)
		return nil
	})
	return err
}

// maxIdleLanes is how many lanes without futures are looked at in a shard.
const maxIdleLanes = 1000

// requireNoLanes returns ErrInUse if a kind has lanes with futures, and else the keys of
// those that are only paused.
func (c *Cluster) requireNoLanes(ctx context.Context, tx kv.Reader, name, before string) (idle [][]byte, err error) {
	lanes := make([]kv.Pending[kv.Page], c.config.Shards)
	for shard := range lanes {
		lanes[shard] = tx.GetRange(kv.Prefix(tuple.AppendString(c.keys.LanesOf(shard), name)),
			kv.RangeOptions{Limit: maxIdleLanes})
	}
	for _, p := range lanes {
		page, err := p.Wait(ctx)
		if err != nil {
			return nil, err
		}
		if page.More && len(page.Items) >= maxIdleLanes {
			return nil, fmt.Errorf("kind of lanes %s: %w: more than %d of its lanes are paused: resume them before %s", name,
				ErrInUse, maxIdleLanes, before)
		}
		for _, item := range page.Items {
			var r layout.LaneRecord
			if err := layout.Decode(item.Key, item.Value, &r); err != nil {
				return nil, err
			}
			key := layout.ParseKey(item.Key)
			lane := layout.Lane{Kind: name, Key: key.Text("key")}
			line := kv.Page{} // a paused lane does not look who has left it
			if r.Empty() && r.Lined {
				if line, err = tx.GetRange(kv.Prefix(c.keys.LineOf(lane)), kv.RangeOptions{Limit: 1}).Wait(ctx); err != nil {
					return nil, err
				}
			}
			if !r.Empty() || len(line.Items) > 0 {
				return nil, fmt.Errorf("lane %v: %w: end what it has admitted and in line before %s", lane, ErrInUse, before)
			}
			idle = append(idle, item.Key)
		}
	}
	return idle, nil
}

// ReadLaneKind returns the settings of a kind of lanes. It returns ErrNotFound for one that
// was not set.
func (c *Cluster) ReadLaneKind(ctx context.Context, name string) (k layout.LaneKind, err error) {
	key := c.keys.LaneKind(name)
	err = c.View(ctx, func(tx kv.Attempt) error {
		value, err := tx.Snapshot().Get(key).Wait(ctx)
		if err != nil {
			return err
		}
		if value == nil {
			return unknownKind(name)
		}
		k = layout.LaneKind{}
		return layout.DecodeLaneKind(key, value, &k)
	})
	return k, err
}

// LaneKinds returns the settings of all kinds of lanes by name. With an error for which
// layout.IsUnreadable holds it returns those that can be read.
func (c *Cluster) LaneKinds(ctx context.Context) (map[string]layout.LaneKind, error) {
	var kinds map[string]layout.LaneKind
	var unreadable []error
	err := c.View(ctx, func(tx kv.Attempt) error {
		kinds, unreadable = map[string]layout.LaneKind{}, nil
		page, err := tx.Snapshot().GetRange(kv.Prefix(c.keys.LaneKinds()), kv.RangeOptions{}).Wait(ctx)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			var k layout.LaneKind
			if err := layout.DecodeLaneKind(item.Key, item.Value, &k); err != nil {
				unreadable = append(unreadable, err)
				continue
			}
			key := layout.ParseKey(item.Key)
			kinds[key.Text("kind")] = k
		}
		return nil
	})
	return kinds, cmp.Or(err, joinSome(unreadable))
}

// PauseLane keeps a lane from admitting futures, or lets it go on. It returns
// ErrBadName, and ErrNotFound for a lane of a kind that was not set. An unknown commit is
// retried and harmless.
func (c *Cluster) PauseLane(ctx context.Context, lane layout.Lane, paused bool) error {
	if err := lane.Check(); err != nil {
		return err
	}
	var then postCommit
	result, err := c.Transact(ctx, kv.Options{Tag: "futura-lanes"}, func(tx kv.Attempt) error {
		value, err := tx.Get(c.keys.LaneKind(lane.Kind)).Wait(ctx)
		if err != nil {
			return err
		}
		if value == nil {
			return unknownKind(lane.Kind)
		}
		w := c.write(tx)
		w.lanes.Of(lane).Pause = &paused
		if err := w.Flush(ctx); err != nil {
			return err
		}
		then = w.postCommit()
		return nil
	})
	if err == nil {
		c.follow(ctx, result.Version, then)
	}
	return err
}

// LaneView is what is known of a lane.
type LaneView struct {
	Lane layout.Lane
	layout.LaneRecord
	// Line are the first futures in line, and More is set if there are others.
	Line []layout.ID
	More bool
}

// ViewLane returns what is known of a lane, and up to limit of the futures in line.
func (c *Cluster) ViewLane(ctx context.Context, lane layout.Lane, limit int) (LaneView, error) {
	v := LaneView{Lane: lane}
	err := c.View(ctx, func(tx kv.Attempt) error {
		v = LaneView{Lane: lane}
		key, snapshot := c.keys.Lane(lane), tx.Snapshot()
		asked := snapshot.Get(key)
		line := snapshot.GetRange(kv.Prefix(c.keys.LineOf(lane)), kv.RangeOptions{Limit: limit + 1})
		value, err := asked.Wait(ctx)
		if err == nil && value != nil {
			err = layout.Decode(key, value, &v.LaneRecord)
		}
		if err != nil {
			return err
		}
		page, err := line.Wait(ctx)
		if err != nil {
			return err
		}
		for _, item := range page.Items[:min(limit, len(page.Items))] {
			var entry layout.LineEntry
			if err := layout.Decode(item.Key, item.Value, &entry); err != nil {
				return err
			}
			v.Line = append(v.Line, entry.ID)
		}
		v.More = len(page.Items) > limit
		return nil
	})
	return v, err
}

// Lanes returns up to limit lanes of a kind that have admitted futures or others in line,
// after one of them, which is empty for the first ones; in no particular order that
// users know, but the same each time.
func (c *Cluster) Lanes(ctx context.Context, kind, after string, limit int) ([]LaneView, error) {
	var views []LaneView
	err := c.View(ctx, func(tx kv.Attempt) error {
		views = nil
		first := 0
		if after != "" {
			first = layout.ShardOf(after, c.config.Shards)
		}
		for shard := first; shard < c.config.Shards && len(views) < limit; shard++ {
			lanes := kv.Prefix(tuple.AppendString(c.keys.LanesOf(shard), kind))
			if after != "" && shard == first {
				lanes.Begin = kv.After(c.keys.Lane(layout.Lane{Kind: kind, Key: after}))
			}
			page, err := tx.Snapshot().GetRange(lanes, kv.RangeOptions{Limit: limit - len(views)}).Wait(ctx)
			if err != nil {
				return err
			}
			for _, item := range page.Items {
				key := layout.ParseKey(item.Key)
				v := LaneView{Lane: layout.Lane{Kind: kind, Key: key.Text("key")}}
				if err := layout.Decode(item.Key, item.Value, &v.LaneRecord); err != nil {
					return err
				}
				views = append(views, v)
			}
		}
		return nil
	})
	return views, err
}

// InLine says where in line a future is.
type InLine struct {
	Lane     layout.Lane
	Settings layout.LaneKind
	Record   layout.LaneRecord
	// Before is how many futures are before it, at most the limit of the call; Ahead are
	// the first of them.
	Before int
	Ahead  []layout.ID
}

// WhereInLine returns where in line a future is, looking at no more than limit others,
// and false for one that is not in line. It returns ErrNotFound.
func (c *Cluster) WhereInLine(ctx context.Context, id layout.ID, limit int) (where InLine, waits bool, err error) {
	err = c.View(ctx, func(tx kv.Attempt) error {
		where, waits = InLine{Settings: layout.LaneKind{Width: 1}}, false
		snapshot := tx.Snapshot()
		row, found, err := read.Record(snapshot, c.keys, id).Wait(ctx)
		switch {
		case err != nil:
			return err
		case !found || row.Spec == nil:
			return fmt.Errorf("future %s: %w", id, ErrNotFound)
		case !row.InLine():
			return nil
		}
		waits, where.Lane = true, row.Spec.Lane
		laneKey, kindKey := c.keys.Lane(where.Lane), c.keys.LaneKind(where.Lane.Kind)
		record, kind := snapshot.Get(laneKey), snapshot.Get(kindKey)
		before := snapshot.GetRange(kv.Range{Begin: c.keys.LineOf(where.Lane), End: c.keys.Line(&row)},
			kv.RangeOptions{Limit: limit})
		if value, err := record.Wait(ctx); err != nil || value != nil && layout.Decode(laneKey, value, &where.Record) != nil {
			return err
		}
		if value, err := kind.Wait(ctx); err != nil || value != nil &&
			layout.DecodeLaneKind(kindKey, value, &where.Settings) != nil {
			return err
		}
		page, err := before.Wait(ctx)
		if err != nil {
			return err
		}
		where.Before = len(page.Items)
		for _, item := range page.Items[:min(len(page.Items), namedErrors)] {
			var entry layout.LineEntry
			if layout.Decode(item.Key, item.Value, &entry) == nil {
				where.Ahead = append(where.Ahead, entry.ID)
			}
		}
		return nil
	})
	return where, waits, err
}
