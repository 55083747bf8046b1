package lanes

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// View is what is known of a lane. Lined says whether futures are in line.
type View struct {
	Lane layout.Lane
	layout.LaneRecord
	// Line are the first futures in line, and More is set if there are others.
	Line []layout.ID
	More bool
}

// View returns what is known of a lane, and up to limit of the futures in line, without entries that can't be read.
func (l *Lanes) View(ctx context.Context, lane layout.Lane, limit int) (View, error) {
	v := View{Lane: lane}
	err := l.cluster.View(ctx, func(tx kv.Attempt) error {
		v = View{Lane: lane}
		key, snapshot := l.keys.Lane(lane), tx.Snapshot()
		asked := snapshot.Get(key)
		line := snapshot.GetRange(l.keys.InLine(lane), kv.RangeOptions{Limit: limit + 1})
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
			if layout.Decode(item.Key, item.Value, &entry) == nil {
				v.Line = append(v.Line, entry.ID)
			}
		}
		v.Lined, v.More = len(page.Items) > 0, len(page.Items) > limit
		return nil
	})
	return v, err
}

// List returns up to limit lanes of a kind that have admitted futures or others in line,
// after one of them, which is empty for the first ones; in no particular order that
// users know, but the same each time, and fewer at the end alone. Those that can't be read are left out.
func (l *Lanes) List(ctx context.Context, kind, after string, limit int) ([]View, error) {
	var views []View
	err := l.cluster.View(ctx, func(tx kv.Attempt) error {
		views = nil
		first := 0
		if after != "" {
			first = layout.ShardOf(after, l.keys.Shards)
		}
		for shard := first; shard < l.keys.Shards; shard++ {
			keys := kv.Prefix(tuple.AppendString(l.keys.Shard(shard, layout.SubLanes), kind))
			if after != "" && shard == first {
				keys.Begin = kv.After(l.keys.Lane(layout.Lane{Kind: kind, Key: after}))
			}
			for more := true; more && len(views) < limit; {
				page, err := tx.Snapshot().GetRange(keys, kv.RangeOptions{Limit: limit - len(views)}).Wait(ctx)
				if err != nil {
					return err
				}
				for _, item := range page.Items {
					key := layout.ParseKey(item.Key)
					v := View{Lane: layout.Lane{Kind: kind, Key: key.Text("key")}}
					if layout.Decode(item.Key, item.Value, &v.LaneRecord) == nil { // a check names others
						views = append(views, v)
					}
					keys.Begin = kv.After(item.Key)
				}
				more = page.More
			}
		}
		return l.seeLines(ctx, tx.Snapshot(), views)
	})
	return views, err
}

// seeLines looks whether futures are in line where some may be.
func (l *Lanes) seeLines(ctx context.Context, tx kv.Reader, views []View) error {
	first := make([]kv.Pending[kv.Page], len(views))
	for i := range views {
		if views[i].Lined {
			first[i] = tx.GetRange(l.keys.InLine(views[i].Lane), kv.RangeOptions{Limit: 1})
		}
	}
	for i := range views {
		if !views[i].Lined {
			continue
		}
		page, err := first[i].Wait(ctx)
		if err != nil {
			return err
		}
		views[i].Lined = len(page.Items) > 0
	}
	return nil
}

// namedAhead is how many futures ahead of another one are named.
const namedAhead = 3

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
func (l *Lanes) WhereInLine(ctx context.Context, id layout.ID, limit int) (where InLine, waits bool, err error) {
	err = l.cluster.View(ctx, func(tx kv.Attempt) error {
		where, waits = InLine{Settings: layout.LaneKind{Width: 1}}, false
		snapshot := tx.Snapshot()
		row, found, err := read.Record(snapshot, l.keys, id).Wait(ctx)
		switch {
		case err != nil:
			return err
		case !found || row.Spec == nil:
			return fmt.Errorf("future %s: %w", id, fdbmodel.ErrNotFound)
		case !row.InLine():
			return nil
		}
		waits, where.Lane = true, row.Spec.Lane
		laneKey, kindKey := l.keys.Lane(where.Lane), l.keys.LaneKind(where.Lane.Kind)
		record, kind := snapshot.Get(laneKey), snapshot.Get(kindKey)
		before := snapshot.GetRange(kv.Range{Begin: l.keys.LineOf(where.Lane), End: l.keys.Line(&row)},
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
		for _, item := range page.Items[:min(len(page.Items), namedAhead)] {
			var entry layout.LineEntry
			if layout.Decode(item.Key, item.Value, &entry) == nil {
				where.Ahead = append(where.Ahead, entry.ID)
			}
		}
		return nil
	})
	return where, waits, err
}
