package actors

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Listed is an actor in a list.
type Listed struct {
	Ref
	Head Head
	// Value is the state, in a list that has them.
	Value []byte
	// Err is set if the head can't be read, or the state is not that of the head.
	Err error
}

// List returns up to limit actors of a type after the one with a key, or the first ones for an
// empty one, in an order that is the same each time, and whether there are others. It returns ErrBadName.
func (a *Actors) List(ctx context.Context, name, after string, limit int) (list []Listed, more bool, err error) {
	err = a.listIn(ctx, name, func(tx kv.Reader) error {
		list, more, err = a.list(ctx, tx, name, after, limit)
		return err
	})
	for i := range list {
		list[i].Value = nil
	}
	return list, more, err
}

// ListStates is List with the states, all read at one version. It ends with the one that has the
// bytes of the states exceed MaxTurnBytes, so it returns fewer than limit where they are large.
func (a *Actors) ListStates(ctx context.Context, name, after string, limit int) (list []Listed, more bool, err error) {
	err = a.listIn(ctx, name, func(tx kv.Reader) error {
		if list, more, err = a.list(ctx, tx, name, after, limit); err != nil {
			return err
		}
		asked, size := make([]kv.Pending[[]byte], 0, len(list)), int64(0)
		for i := 0; i < len(list) && size <= MaxTurnBytes; i++ {
			one := &list[i]
			record := HeadRecord{Head: one.Head, State: one.Value}
			asked, size = append(asked, a.valueOf(tx, one.Ref, &record)), size+one.Head.Size
		}
		list, more = list[:len(asked)], more || len(asked) < len(list)
		for i := range list {
			one := &list[i]
			if one.Value, err = asked[i].Wait(ctx); err != nil {
				return err
			}
			if one.Err == nil && !one.Head.fits(one.Value) {
				one.Err = badState(one.Ref, &one.Head, one.Value)
			}
		}
		return nil
	})
	return list, more, err
}

func (a *Actors) listIn(ctx context.Context, name string, read func(kv.Reader) error) error {
	if err := CheckType(name); err != nil {
		return err
	}
	return a.cluster.View(ctx, func(tx kv.Attempt) error { return read(tx.Snapshot()) })
}

// list has the states that lie within their heads.
func (a *Actors) list(ctx context.Context, tx kv.Reader, name, after string, limit int,
) (list []Listed, more bool, err error) {
	first := 0
	if after != "" {
		first = layout.ShardOf(after, a.keys.Shards)
	}
	for shard := first; shard < a.keys.Shards && len(list) <= limit; shard++ {
		prefix := a.keys.shard(shard, headPart, name)
		within := kv.Prefix(prefix)
		if after != "" && shard == first {
			within.Begin = kv.After(a.keys.Head(Ref{name, after}))
		}
		page, err := tx.GetRange(within, kv.RangeOptions{Limit: limit + 1 - len(list)}).Wait(ctx)
		if err != nil {
			return nil, false, err
		}
		for _, item := range page.Items {
			rest := tuple.NewReader(item.Key[len(prefix):])
			one := Listed{Ref: Ref{name, rest.Text()}}
			if one.Err = rest.Done(); one.Err == nil {
				var record HeadRecord
				one.Err = layout.Decode(item.Key, item.Value, &record)
				one.Head, one.Value = record.Head, record.State
			}
			list = append(list, one)
		}
	}
	return list[:min(limit, len(list))], len(list) > limit, nil
}

func badState(r Ref, h *Head, state []byte) error {
	return fmt.Errorf("%w: actor %s: a state of %d bytes, and its head says %d at version %d", layout.ErrBadRecord, r,
		len(state), h.Size, h.Version)
}
