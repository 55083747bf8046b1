package lanes

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// SetKind sets the settings of a kind of lanes. All processes obey them from the
// commit on; what is admitted stays so, and so does a pause of a kind that was set before.
// If they let lanes admit more than before, it admits what they have in line, as a
// janitor does if the caller dies, or if that fails. It returns
// ErrBadName, ErrBadConfig, ErrTooManyKinds for a new kind where there are
// layout.MaxLaneKinds, and ErrInUse if a total width is set or lifted while
// lanes of the kind have admitted futures or others in line: they were not counted. An
// unknown commit is retried and harmless.
func (l *Lanes) SetKind(ctx context.Context, name string, k layout.LaneKind) error {
	return l.setKind(ctx, name, k, false)
}

// EnsureKind is SetKind unless the kind was set before: then it changes nothing.
func (l *Lanes) EnsureKind(ctx context.Context, name string, k layout.LaneKind) error {
	return l.setKind(ctx, name, k, true)
}

// EnsureKindTx is EnsureKind in a transaction of the caller's: the kind is there once that has committed. An
// unknown commit that is retried is harmless.
func (l *Lanes) EnsureKindTx(ctx context.Context, tx kv.Tx, name string, k layout.LaneKind) error {
	change, err := setting(name, k, true)
	if err != nil {
		return err
	}
	return l.changeKindTx(ctx, tx, name, change)
}

func (l *Lanes) setKind(ctx context.Context, name string, k layout.LaneKind, keep bool) error {
	change, err := setting(name, k, keep)
	if err != nil {
		return err
	}
	return l.changeKind(ctx, name, change)
}

// setting returns what changes the settings of a kind to k, unless it has some and keeps them.
func setting(name string, k layout.LaneKind, keep bool) (change, error) {
	if err := layout.CheckLaneKind(name); err != nil {
		return nil, err
	}
	k = k.WithDefaults()
	if err := k.Validate(); err != nil {
		return nil, fmt.Errorf("kind of lanes %s: %w", name, err)
	}
	return func(was *layout.LaneKind) (layout.LaneKind, error) {
		k := k // of this attempt: the next may find no such kind
		switch {
		case was != nil && keep:
			return *was, nil
		case was != nil:
			k.Paused = was.Paused
		}
		return k, nil
	}, nil
}

// PauseKind keeps all lanes of a kind from admitting futures, or lets them go on. It
// returns ErrNotFound for a kind that was not set. An unknown commit is retried and
// harmless.
func (l *Lanes) PauseKind(ctx context.Context, name string, paused bool) error {
	return l.changeKind(ctx, name, func(was *layout.LaneKind) (layout.LaneKind, error) {
		if was == nil {
			return layout.LaneKind{}, unknownKind(name)
		}
		k := *was
		k.Paused = paused
		return k, nil
	})
}

func unknownKind(name string) error {
	return fmt.Errorf("kind of lanes %q: %w", name, fdbmodel.ErrNotFound)
}

// change returns the settings that a kind gets. It receives those that it has, nil for none.
type change func(was *layout.LaneKind) (layout.LaneKind, error)

// changeKindTx leaves what lanes then have room for to the caller.
func (l *Lanes) changeKindTx(ctx context.Context, tx kv.Tx, name string, change change) error {
	key := l.keys.LaneKind(name)
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
		if err := l.requireRoom(ctx, tx, name); err != nil {
			return err
		}
	}
	if was != nil && ((was.Total == 0) != (k.Total == 0) || was.Bundle != k.Bundle) {
		before := "its total width is set or lifted, or the function of its bundles is changed"
		if _, err := l.requireNoLanes(ctx, tx, name, before); err != nil {
			return err
		}
	}
	k.Sweep = 0
	if was != nil {
		if k.Sweep = was.Sweep; k == *was {
			return nil // submits to its lanes would conflict
		}
		if admitsMore(was, &k) {
			k.Sweep = max(1, was.Sweep+1)
		}
	}
	tx.Set(key, layout.Encode(&k))
	return nil
}

func (l *Lanes) changeKind(ctx context.Context, name string, change change) error {
	_, err := l.cluster.Transact(ctx, options(), func(tx kv.Attempt) error {
		return l.changeKindTx(ctx, tx, name, change)
	})
	if err != nil {
		return err
	}
	_ = l.Sweep(ctx) // of any kind; what fails of it is the janitor's, who says so
	return nil
}

// requireRoom returns ErrTooManyKinds if a cluster has all the kinds of lanes that
// it may have. It conflicts with a transaction that makes another one.
func (l *Lanes) requireRoom(ctx context.Context, tx kv.Reader, name string) error {
	page, err := tx.GetRange(kv.Prefix(l.keys.LaneKinds()), kv.RangeOptions{Limit: layout.MaxLaneKinds}).Wait(ctx)
	if err != nil || len(page.Items) < layout.MaxLaneKinds {
		return err
	}
	return fmt.Errorf("kind of lanes %s: %w: a cluster has at most %d: tell lanes of one kind apart by their keys, or "+
		"remove a kind that is not used", name, fdbmodel.ErrTooManyKinds, layout.MaxLaneKinds)
}

// admitsMore reports whether lanes may have room by new settings that they had not by
// the old ones.
func admitsMore(was, k *layout.LaneKind) bool {
	return !k.Paused && (was.Paused || k.Width > was.Width || k.Total > was.Total || k.Rate != was.Rate ||
		k.Every != was.Every)
}

// RemoveKind removes the settings of a kind of lanes, and the pauses of its lanes. It
// returns ErrNotFound, and ErrInUse while lanes of the kind have admitted futures or
// others in line, or while more than 1,000 lanes of a shard are paused or have used up their rate. Futures
// of the kind that are blocked or delayed then get in line for lanes of width 1. An
// unknown commit is retried; a kind that is gone by then was removed.
func (l *Lanes) RemoveKind(ctx context.Context, name string) error {
	key := l.keys.LaneKind(name)
	_, err := l.cluster.Transact(ctx, options(), func(tx kv.Attempt) error {
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
		idle, err := l.requireNoLanes(ctx, tx, name, "it is removed")
		if err != nil {
			return err
		}
		for _, key := range idle {
			tx.Clear(key)
		}
		tx.Clear(key)
		return nil
	})
	return err
}

// maxIdleLanes is how many lanes without futures are looked at in a shard.
const maxIdleLanes = 1000

// requireNoLanes returns ErrInUse if a kind has lanes with futures, and else the keys of
// those that are only paused, or have used up their rate.
func (l *Lanes) requireNoLanes(ctx context.Context, tx kv.Reader, name, before string) (idle [][]byte, err error) {
	pages := make([]kv.Pending[kv.Page], l.keys.Shards)
	for shard := range pages {
		pages[shard] = tx.GetRange(kv.Prefix(tuple.AppendString(l.keys.Shard(shard, layout.SubLanes), name)),
			kv.RangeOptions{Limit: maxIdleLanes})
	}
	for _, p := range pages {
		page, err := p.Wait(ctx)
		if err != nil {
			return nil, err
		}
		if page.More && len(page.Items) >= maxIdleLanes {
			return nil, fmt.Errorf("kind of lanes %s: %w: more than %d of its lanes are paused, or have used up their rate: "+
				"resume them, or wait, before %s", name, fdbmodel.ErrInUse, maxIdleLanes, before)
		}
		for _, item := range page.Items {
			var r layout.LaneRecord
			if err := layout.Decode(item.Key, item.Value, &r); err != nil {
				return nil, err
			}
			key := layout.ParseKey(item.Key)
			lane := layout.Lane{Kind: name, Key: key.Text("key")}
			line := kv.Page{} // a lane that is paused, or waits for its rate, does not notice that its line is empty
			if r.Empty() && r.Lined {
				if line, err = tx.GetRange(l.keys.InLine(lane), kv.RangeOptions{Limit: 1}).Wait(ctx); err != nil {
					return nil, err
				}
			}
			if !r.Empty() || len(line.Items) > 0 {
				return nil, fmt.Errorf("lane %v: %w: end what it has admitted and in line before %s", lane,
					fdbmodel.ErrInUse, before)
			}
			if idle = append(idle, item.Key); r.Due != 0 {
				idle = append(idle, l.keys.LaneDue(lane, r.Due))
			}
		}
	}
	return idle, nil
}

// Kind returns the settings of a kind of lanes. It returns ErrNotFound for one that
// was not set.
func (l *Lanes) Kind(ctx context.Context, name string) (k layout.LaneKind, err error) {
	key := l.keys.LaneKind(name)
	err = l.cluster.View(ctx, func(tx kv.Attempt) error {
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

// namedErrors is how many errors one error names that stands for many.
const namedErrors = 3

// Kinds returns the settings of all kinds of lanes by name. With an error for which
// layout.IsUnreadable holds it returns those that can be read.
func (l *Lanes) Kinds(ctx context.Context) (map[string]layout.LaneKind, error) {
	var kinds map[string]layout.LaneKind
	var unreadable []error
	err := l.cluster.View(ctx, func(tx kv.Attempt) error {
		kinds, unreadable = map[string]layout.LaneKind{}, nil
		page, err := tx.Snapshot().GetRange(kv.Prefix(l.keys.LaneKinds()), kv.RangeOptions{}).Wait(ctx)
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
	if more := len(unreadable) - namedErrors; more > 0 {
		unreadable = append(unreadable[:namedErrors], fmt.Errorf("and %d more", more))
	}
	return kinds, cmp.Or(err, errors.Join(unreadable...))
}
