// Package owners reads the futures of an owner, such as a batch: those that wait to be assigned,
// and what is counted of them.
package owners

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Owners are the owners of a cluster's futures. Their methods are safe for concurrent use.
type Owners struct {
	cluster *fdbmodel.Cluster
	keys    layout.Keyspace
}

// Of returns the owners of a cluster.
func Of(c *fdbmodel.Cluster) Owners { return Owners{c, c.Keys()} }

// HeldFuture is a future that waits to be assigned.
type HeldFuture struct {
	ID       layout.ID
	Priority uint8
	// Failed is how many attempts have failed.
	Failed int
	// Due is the time until which it should wait, in milliseconds of Unix time,
	// 0 if it need not wait.
	Due int64
}

// Held returns up to limit futures of an owner that wait to be assigned, and
// the cursor of the next page, empty at the end. Within a shard those with the
// fewest failed attempts come first, then those that are due earliest, then
// those of the highest priority. Respecting the due time of a held future is up
// to the caller. It returns ErrBadCursor for an invalid cursor.
func (o Owners) Held(ctx context.Context, owner string, cursor []byte, limit int) ([]HeldFuture, []byte, error) {
	shard := 0
	if len(cursor) > 0 {
		if shard = int(cursor[0]); shard >= o.keys.Shards {
			return nil, nil, fmt.Errorf("%w: %x is not a cursor of held futures", layout.ErrBadCursor, cursor)
		}
	}
	var held []HeldFuture
	for ; shard < o.keys.Shards; shard++ {
		prefix := o.keys.HeldOf(shard, owner)
		r := kv.Prefix(prefix)
		if len(cursor) > 1 {
			r.Begin = append(bytes.Clone(prefix), cursor[1:]...)
		}
		cursor = nil
		var page kv.Page
		err := o.cluster.View(ctx, func(tx kv.Attempt) (err error) {
			page, err = tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: limit - len(held)}).Wait(ctx)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		for _, item := range page.Items {
			rest := tuple.NewReader(item.Key[len(prefix):])
			failed, due, inverse, id := rest.Int(), rest.Int(), rest.Int(), layout.ID(rest.UUID())
			if err := rest.Done(); err != nil {
				return nil, nil, fmt.Errorf("%s: %w: %w", tuple.String(item.Key), layout.ErrBadRecord, err)
			}
			held = append(held, HeldFuture{ID: id, Priority: uint8(255 - inverse), Failed: int(failed), Due: due})
		}
		if page.More {
			last := page.Items[len(page.Items)-1].Key
			return held, append([]byte{byte(shard)}, kv.After(last)[len(prefix):]...), nil
		}
		if len(held) >= limit && shard+1 < o.keys.Shards {
			return held, []byte{byte(shard + 1)}, nil
		}
	}
	return held, nil, nil
}

// Watch returns a watch that fires when a held future of the owner ends,
// is assigned, or starts to wait for an assignment, and when the batch with
// that id changes. To see earlier changes the caller reads after this call. The
// caller cancels the watch.
func (o Owners) Watch(ctx context.Context, owner string) (kv.Watch, error) {
	var watch kv.Watch
	_, err := o.cluster.Transact(ctx, kv.Options{Tag: "futura-read"}, func(tx kv.Attempt) error {
		watch = tx.Watch(o.keys.OwnerWake(owner))
		return nil
	})
	if err != nil && watch != nil {
		watch.Cancel()
		watch = nil
	}
	return watch, err
}

// Counts returns how many futures of an owner are in each state, from its
// counters.
func (o Owners) Counts(ctx context.Context, queue, owner string) (map[layout.State]int64, error) {
	var counts map[layout.State]int64
	err := o.cluster.View(ctx, func(tx kv.Attempt) (err error) {
		counts, err = o.CountsIn(ctx, tx.Snapshot(), queue, owner)
		return err
	})
	return counts, err
}

// CountsIn is Counts in a transaction, which conflicts with every change of a state unless
// it reads from a snapshot.
func (o Owners) CountsIn(ctx context.Context, tx kv.Reader, queue, owner string) (map[layout.State]int64, error) {
	pending := make([]kv.Pending[kv.Page], o.keys.Shards)
	for shard := range pending {
		pending[shard] = tx.GetRange(kv.Prefix(o.keys.CountOwner(shard, queue, owner)), kv.RangeOptions{})
	}
	counts := map[layout.State]int64{}
	for shard, p := range pending {
		page, err := p.Wait(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			key, n, err := layout.ParseCount(o.keys.Shard(shard, layout.SubCounts), item)
			if err != nil {
				return nil, err
			}
			counts[key.State] += n
		}
	}
	return counts, nil
}

// Open returns how many held futures of an owner are with the workers that
// they were assigned to, waiting or running, by the reason of their assignment.
func (o Owners) Open(ctx context.Context, owner string) (map[string]int64, error) {
	open := map[string]int64{}
	prefix := o.keys.OwnerOpenOf(owner)
	err := o.cluster.EachKey(ctx, kv.Prefix(prefix), func(item kv.KeyValue) error {
		reason, n, err := layout.ParseOpen(prefix, item)
		if n != 0 {
			open[reason] = n
		}
		return err
	})
	return open, err
}

// Retries counts the held futures of an owner that wait to be assigned
// after an attempt that failed, and returns when the next of them becomes due:
// the zero time if all are due.
func (o Owners) Retries(ctx context.Context, owner string, now time.Time) (n int, next time.Time, err error) {
	first := int64(0)
	for shard := range o.keys.Shards {
		prefix := o.keys.HeldOf(shard, owner)
		r := kv.Prefix(prefix)
		r.Begin = tuple.AppendInt(o.keys.HeldOf(shard, owner), 1)
		err := o.cluster.EachKey(ctx, r, func(item kv.KeyValue) error {
			rest := tuple.NewReader(item.Key[len(prefix):])
			rest.Int()
			if due := rest.Int(); due > layout.Millis(now) && (first == 0 || due < first) {
				first = due
			}
			n++
			return nil
		})
		if err != nil {
			return 0, next, err
		}
	}
	if first != 0 {
		next = time.UnixMilli(first).UTC()
	}
	return n, next, nil
}

// Drop removes the counters and the wake key of an owner without futures. It
// returns fdbmodel.ErrTransition if it still has some. An unknown commit is retried and
// harmless.
func (o Owners) Drop(ctx context.Context, queue, owner string) error {
	_, err := o.cluster.Transact(ctx, kv.Options{Tag: "futura-discard"}, func(tx kv.Attempt) error {
		for shard := range o.keys.Shards {
			r := kv.Prefix(o.keys.CountOwner(shard, queue, owner))
			page, err := tx.GetRange(r, kv.RangeOptions{}).Wait(ctx)
			if err != nil {
				return err
			}
			for _, item := range page.Items {
				key, n, err := layout.ParseCount(o.keys.Shard(shard, layout.SubCounts), item)
				if err != nil {
					return err
				}
				if n != 0 {
					return fmt.Errorf("owner %q has %d futures that are %v: %w", owner, n, key.State, fdbmodel.ErrTransition)
				}
			}
			tx.ClearRange(r)
		}
		tx.ClearRange(kv.Prefix(o.keys.Owner(owner)))
		return nil
	})
	return err
}
