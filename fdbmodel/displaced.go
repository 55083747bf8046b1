package fdbmodel

import (
	"context"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// Limits of one call of ReplaceDisplaced.
const (
	displacedClasses = 64                     // classes of the ready index that it goes past
	maxDisplaced     = janitorBatch           // futures that it looks at
	displacedPause   = 200 * time.Millisecond // until the next one, while the index goes on
)

// DisplacedWalk is where a walk over the ready index goes on that looks for displaced
// futures. The zero value is at its beginning. It belongs to one goroutine.
type DisplacedWalk struct {
	shard int
	next  []byte // nil for the beginning of the shard
}

// ReplaceDisplaced looks for a worker again for futures that must be near an object
// and that none of the workers which had it could run: where one that has it can by
// now, where none has it any more, so that it is to be made again, and where its
// result is no object any more. Others stay as they are. A call looks at a part of the
// ready index, with one small read for each class of it, and at a few of the futures.
// It returns how many it found such a place for, and when to call it again to go on with
// the index; the zero time if it has seen all of it. Several processes may run it: the
// rows are read serializably. Unreadable futures stay. An unknown commit is retried and
// harmless.
func (c *Cluster) ReplaceDisplaced(ctx context.Context, walk *DisplacedWalk) (n int, next time.Time, err error) {
	var ids []layout.ID
	var at DisplacedWalk
	lapped := false
	err = c.View(ctx, func(tx kv.Attempt) (err error) {
		at, ids = *walk, nil
		if ids, lapped, err = c.findDisplaced(ctx, tx.Snapshot(), &at); err == nil {
			ids, err = c.placeable(ctx, tx.Snapshot(), ids)
		}
		return err
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	if len(ids) > 0 {
		outcomes, err := c.changeMany(ctx, ids, Event{Kind: EventReplace, Now: c.clock.Now()})
		if err != nil {
			return 0, time.Time{}, err
		}
		n = len(outcomes) - count(outcomes, Refused)
	}
	if *walk = at; !lapped {
		next = c.clock.Now().Add(displacedPause)
	}
	return n, next, nil
}

func count(outcomes []Outcome, of Outcome) (n int) {
	for _, o := range outcomes {
		if o == of {
			n++
		}
	}
	return n
}

// findDisplaced walks on until it has seen enough classes or futures, and reports
// whether it has come to the end of the index.
func (c *Cluster) findDisplaced(ctx context.Context, tx kv.Reader, at *DisplacedWalk) (ids []layout.ID, lapped bool,
	err error,
) {
	for range displacedClasses {
		prefix := c.keys.Shard(at.shard, layout.SubReady)
		r := kv.Prefix(prefix)
		if at.next != nil {
			r.Begin = at.next
		}
		page, err := tx.GetRange(r, kv.RangeOptions{Limit: 1}).Wait(ctx)
		if err != nil {
			return nil, false, err
		}
		if len(page.Items) == 0 {
			at.next = nil
			if at.shard = (at.shard + 1) % c.config.Shards; at.shard == 0 {
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
		if !isDisplaced(e.Class.Labels) {
			continue
		}
		class.Begin = e.Key
		page, err = tx.GetRange(class, kv.RangeOptions{Limit: maxDisplaced - len(ids)}).Wait(ctx)
		if err != nil {
			return nil, false, err
		}
		for _, item := range page.Items {
			if e, _, _, err := layout.ParseAnyReady(item, prefix); err == nil {
				ids = append(ids, e.ID)
			}
			at.next = kv.After(item.Key)
		}
		if len(ids) >= maxDisplaced {
			return ids, false, nil
		}
	}
	return ids, false, nil
}

// isDisplaced reports whether futures with these labels are displaced.
func isDisplaced(labels string) bool {
	for text := range strings.SplitSeq(labels, ",") {
		if strings.HasPrefix(text, layout.LabelNear+"=") {
			return true
		}
	}
	return false
}

// placeable returns those of some displaced futures that need not stay so.
func (c *Cluster) placeable(ctx context.Context, tx kv.Reader, ids []layout.ID) ([]layout.ID, error) {
	infos := memberInfos{cluster: c, tx: tx}
	var all []approach
	for _, p := range read.Rows(tx, c.keys, ids, c.keys.Spec) {
		row, found, err := p.Wait(ctx)
		switch {
		case layout.IsUnreadable(err):
		case err != nil:
			return nil, err
		case found && row.Spec != nil && row.State() == layout.Ready && row.Attempts.Displaced:
			copies := tx.GetRange(kv.Prefix(c.keys.CopiesOf(row.Spec.Near)), kv.RangeOptions{Limit: maxCopies})
			all = append(all, approach{row: &row, infos: &infos, near: read.Record(tx, c.keys, row.Spec.Near),
				copies: []kv.Pending[kv.Page]{copies}})
		}
	}
	var able []layout.ID
	for i := range all {
		if is, err := all[i].placeable(ctx); err != nil {
			return nil, err
		} else if is {
			able = append(able, all[i].row.ID)
		}
	}
	return able, nil
}

func (a *approach) placeable(ctx context.Context) (bool, error) {
	near, _, err := a.near.Wait(ctx)
	switch {
	case layout.IsUnreadable(err):
		return false, nil
	case err != nil:
		return false, err
	case near.Spec == nil || near.State() != layout.Realized || near.Object() == "":
		return true, nil
	}
	alive, able, err := a.holders(ctx, near.Object())
	return len(alive) == 0 || len(able) > 0, err
}
