package index

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Owners wake the processes that drive owners of held futures, and count what is with
// workers for them.
type Owners struct {
	*Set
	// Losing is set while a worker dies or leaves: its chunks count what it loses.
	Losing bool

	changed map[string]struct{}
	open    map[layout.OpenKey]int64
	lost    map[layout.OpenKey]int
}

// Update implements Index. It wakes an owner's process if a future has ended, was
// assigned, or waits for an assignment.
func (o *Owners) Update(before, after *layout.Row) {
	if before != nil {
		o.countOpen(before, -1)
	}
	if after == nil {
		return
	}
	o.countOpen(after, 1)
	if after.State() != layout.Claimed {
		o.Wake(after.Spec.Owner)
	}
	if o.Losing && before != nil && before.Open() && !after.Open() {
		if o.lost == nil {
			o.lost = map[layout.OpenKey]int{}
		}
		o.lost[layout.OpenKey{Owner: before.Spec.Owner, Reason: before.Attempts.Reason}]++
	}
}

// Wake wakes the process of an owner. Futures that are not held have an empty owner.
func (o *Owners) Wake(owner string) {
	if owner == "" {
		return
	}
	if o.changed == nil {
		o.changed = map[string]struct{}{}
	}
	o.changed[owner] = struct{}{}
}

func (o *Owners) countOpen(row *layout.Row, n int64) {
	if !row.Open() {
		return
	}
	if o.open == nil {
		o.open = map[layout.OpenKey]int64{}
	}
	o.open[layout.OpenKey{Owner: row.Spec.Owner, Reason: row.Attempts.Reason}] += n
}

// Flush implements Index.
func (o *Owners) Flush(ctx context.Context) error {
	for k, n := range o.open {
		if n != 0 {
			o.Tx.Atomic(kv.Add, o.Keys.OwnerOpen(k.Owner, k.Reason), layout.EncodeCounter(n))
		}
	}
	for owner := range o.changed {
		o.Tx.SetVersionstampedValue(o.Keys.OwnerWake(owner), layout.EncodeWake(), layout.StampOffset)
	}
	return o.flushLost(ctx)
}

// flushLost counts what a worker loses in the records of its chunks, if it was given in
// chunks of batches. A record that can't be read keeps nothing from going back.
func (o *Owners) flushLost(ctx context.Context) error {
	keys := slices.SortedFunc(maps.Keys(o.lost), func(a, b layout.OpenKey) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Reason, b.Reason))
	})
	asked := make([]kv.Pending[[]byte], len(keys))
	for i, k := range keys {
		asked[i] = o.Tx.Get(o.Keys.BatchChunk(k.Owner, k.Reason))
	}
	for i, k := range keys {
		value, err := asked[i].Wait(ctx)
		if err != nil {
			return err
		}
		key, chunk := o.Keys.BatchChunk(k.Owner, k.Reason), layout.BatchChunk{ID: k.Reason}
		if value == nil || layout.Decode(key, value, &chunk) != nil {
			continue
		}
		chunk.Lost += o.lost[k]
		o.Tx.Set(key, layout.Encode(&chunk))
	}
	return nil
}
