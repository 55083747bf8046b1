package results

import (
	"context"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/nearby"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/state"
)

// Limits of one call of ReplaceUnplaceable.
const (
	unplaceableClasses = 64                     // classes of the ready index that it goes past
	maxUnplaceable     = 64                     // futures that it looks at
	unplaceablePause   = 200 * time.Millisecond // until the next one, while the index goes on
)

// UnplaceableWalk is where a walk over the ready index goes on that looks for unplaceable
// futures. The zero value is at its beginning. It belongs to one goroutine.
type UnplaceableWalk struct {
	shard int
	next  []byte // nil for the beginning of the shard
}

// ReplaceUnplaceable looks for a worker again for futures that must be near an object
// and that none of the workers which had it could run: where one that has it can by
// now, where none has it any more, so that it is to be made again, and where its
// result is no object any more. Others stay as they are. A call looks at a part of the
// ready index, with one small read for each class of it, and at a few of the futures.
// It returns how many it found such a place for, and when to call it again to go on with
// the index; the zero time if it has seen all of it. Several processes may run it: the
// rows are read serializably. Unreadable futures stay. An unknown commit is retried and
// harmless.
func (r *Results) ReplaceUnplaceable(ctx context.Context, walk *UnplaceableWalk) (n int, next time.Time, err error) {
	var ids []layout.ID
	var at UnplaceableWalk
	lapped := false
	err = r.cluster.View(ctx, func(tx kv.Attempt) (err error) {
		at, ids = *walk, nil
		if ids, lapped, err = r.findUnplaceable(ctx, tx.Snapshot(), &at); err == nil {
			ids, err = r.placeable(ctx, tx.Snapshot(), ids)
		}
		return err
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	if len(ids) > 0 {
		if n, err = r.replace(ctx, ids); err != nil {
			return 0, time.Time{}, err
		}
	}
	if *walk = at; !lapped {
		next = r.cluster.Now().Add(unplaceablePause)
	}
	return n, next, nil
}

// replace looks for a worker for some unplaceable futures, and returns for how many.
func (r *Results) replace(ctx context.Context, ids []layout.ID) (n int, err error) {
	event := state.Event{Kind: state.EventReplace, Now: r.cluster.Now()}
	_, err = r.cluster.Change(ctx, kv.Options{Tag: "futura-replace"}, func(tx kv.Attempt, w *fdbmodel.WriteSet) error {
		n = 0
		for _, p := range read.Records(tx, r.keys, ids) {
			row, found, err := p.Wait(ctx)
			if err != nil {
				return err
			}
			if !found || row.Spec == nil || w.Skips(&row) {
				continue
			}
			if after, outcome := state.Next(row, event); outcome == fdbmodel.Applied {
				w.Apply(&row, &after)
				n++
			}
		}
		return nil
	})
	return n, err
}

// findUnplaceable walks on until it has seen enough classes or futures, and reports
// whether it has come to the end of the index.
func (r *Results) findUnplaceable(ctx context.Context, tx kv.Reader, at *UnplaceableWalk) (ids []layout.ID, lapped bool,
	err error,
) {
	for range unplaceableClasses {
		prefix := r.keys.Shard(at.shard, layout.SubReady)
		all := kv.Prefix(prefix)
		if at.next != nil {
			all.Begin = at.next
		}
		page, err := tx.GetRange(all, kv.RangeOptions{Limit: 1}).Wait(ctx)
		if err != nil {
			return nil, false, err
		}
		if len(page.Items) == 0 {
			at.next = nil
			if at.shard = (at.shard + 1) % r.keys.Shards; at.shard == 0 {
				return ids, true, nil
			}
			continue
		}
		e, _, classEnd, err := layout.ParseAnyReady(page.Items[0], prefix)
		if err != nil {
			at.next = kv.After(page.Items[0].Key) // an audit reports it
			continue
		}
		class := kv.Prefix(e.Key[:classEnd])
		at.next = class.End
		if !isUnplaceable(e.Class.Labels) {
			continue
		}
		class.Begin = e.Key
		page, err = tx.GetRange(class, kv.RangeOptions{Limit: maxUnplaceable - len(ids)}).Wait(ctx)
		if err != nil {
			return nil, false, err
		}
		for _, item := range page.Items {
			if e, _, _, err := layout.ParseAnyReady(item, prefix); err == nil {
				ids = append(ids, e.ID)
			}
			at.next = kv.After(item.Key)
		}
		if len(ids) >= maxUnplaceable {
			return ids, false, nil
		}
	}
	return ids, false, nil
}

// isUnplaceable reports whether futures with these labels are unplaceable.
func isUnplaceable(labels string) bool {
	for text := range strings.SplitSeq(labels, ",") {
		if strings.HasPrefix(text, layout.LabelNear+"=") {
			return true
		}
	}
	return false
}

// placeable returns those of some unplaceable futures that need not stay so.
func (r *Results) placeable(ctx context.Context, tx kv.Reader, ids []layout.ID) ([]layout.ID, error) {
	search := nearby.NewSearch(tx, r.keys)
	var all []nearby.Future
	for _, p := range read.Rows(tx, r.keys, ids, r.keys.Spec) {
		row, found, err := p.Wait(ctx)
		switch {
		case layout.IsUnreadable(err):
		case err != nil:
			return nil, err
		case found && row.Spec != nil && row.Spec.MustBeNear && row.State() == layout.Ready && row.Attempts.Unplaceable:
			all = append(all, search.Ask(&row, row.Spec.Near))
		}
	}
	var able []layout.ID
	for i := range all {
		if is, err := all[i].Placeable(ctx); err != nil {
			return nil, err
		} else if is {
			able = append(able, all[i].Row.ID)
		}
	}
	return able, nil
}
