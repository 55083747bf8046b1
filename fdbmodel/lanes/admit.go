package lanes

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/lane"
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
// admits early or late by as much. What can't be read doesn't hold up the others: one call goes
// on where the former has ended, if that came upon thousands. An unknown commit is retried and
// harmless.
func (l *Lanes) AdmitDue(ctx context.Context) (looked int, next time.Time, err error) {
	var index *lane.Index
	var scan *shards.Scan
	_, err = l.cluster.Change(ctx, options(), func(tx kv.Attempt, w *fdbmodel.WriteSet) (err error) {
		index, scan = w.Lanes(), l.due.Read(tx.Snapshot(), l.keys.Shards, l.keys.LanesDueOf, lanesAtOnce+1)
		looked, next, err = l.lookAtDue(ctx, scan, index)
		return err
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	l.due.Keep(scan)
	if index.Due != 0 {
		next = clock.Earlier(next, time.UnixMilli(index.Due))
	}
	if looked == lanesAtOnce {
		next = l.cluster.Now()
	}
	return looked, next, nil
}

func (l *Lanes) lookAtDue(ctx context.Context, scan *shards.Scan, index *lane.Index,
) (looked int, next time.Time, err error) {
	now := layout.Millis(l.cluster.Now())
	for looked < lanesAtOnce {
		item, skip, err := scan.Next(ctx)
		if err != nil || item.Key == nil {
			return looked, next, err
		}
		rest := tuple.NewReader(item.Key[skip:])
		at, lane := rest.Int(), layout.Lane{Kind: rest.Text(), Key: rest.Text()}
		switch {
		case rest.Done() != nil || index.Skips(lane): // an audit reports it
		case at > now:
			next = clock.Earlier(next, time.UnixMilli(at))
			scan.Leave()
		default:
			index.Of(lane).Due = item.Key
			looked++
		}
	}
	return looked, next, nil
}

// Sweep has the lanes of kinds whose settings have changed admit what they have
// room for since then. Several processes may run it; the first one at the end ends
// it. An unknown commit is retried and harmless. What can't be read does not hold up other
// kinds: their error comes after those.
func (l *Lanes) Sweep(ctx context.Context) error {
	kinds, unreadable := l.Kinds(ctx)
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
		err := l.sweepKind(ctx, name, k.Sweep)
		if err != nil && !layout.IsUnreadable(err) {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// sweepKind is Sweep for one kind.
func (l *Lanes) sweepKind(ctx context.Context, name string, sweep int64) error {
	for shard := range l.keys.Shards {
		if err := l.sweepShard(ctx, name, shard); err != nil {
			return err
		}
	}
	return l.endSweep(ctx, name, sweep)
}

// sweepShard looks at the lanes of a kind in a shard that have futures in line, or have
// used up their rate.
func (l *Lanes) sweepShard(ctx context.Context, name string, shard int) error {
	rest := kv.Prefix(tuple.AppendString(l.keys.Shard(shard, layout.SubLanes), name))
	for more := true; more; {
		var next []byte
		_, err := l.cluster.Change(ctx, options(), func(tx kv.Attempt, w *fdbmodel.WriteSet) (err error) {
			next, more, err = l.sweepPage(ctx, tx, w.Lanes(), rest, name)
			return err
		})
		if err != nil {
			return err
		}
		rest.Begin = next
	}
	return nil
}

// sweepPage looks at the next lanes of a range, and returns where the others begin.
func (l *Lanes) sweepPage(ctx context.Context, tx kv.Attempt, index *lane.Index, rest kv.Range, name string,
) (next []byte, more bool, err error) {
	page, err := tx.Snapshot().GetRange(rest, kv.RangeOptions{Limit: 8 * lanesAtOnce}).Wait(ctx)
	if err != nil {
		return nil, true, err
	}
	now := l.cluster.Now().UnixMicro()
	for _, item := range page.Items {
		var record layout.LaneRecord
		if layout.Decode(item.Key, item.Value, &record) != nil || !record.Lined && record.Spent <= now {
			continue // unreadable ones are an audit's
		}
		key := layout.ParseKey(item.Key)
		lane := layout.Lane{Kind: name, Key: key.Text("key")}
		if index.Skips(lane) {
			continue
		}
		if index.Len() == lanesAtOnce {
			return item.Key, true, nil
		}
		index.Of(lane).Sweep = true
	}
	if page.More {
		return kv.After(page.Items[len(page.Items)-1].Key), true, nil
	}
	return rest.End, false, nil
}

// endSweep says that all lanes of a kind were looked at since a change of its settings.
func (l *Lanes) endSweep(ctx context.Context, name string, sweep int64) error {
	key := l.keys.LaneKind(name)
	_, err := l.cluster.Transact(ctx, options(), func(tx kv.Attempt) error {
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
