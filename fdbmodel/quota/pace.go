package quota

import (
	"context"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

const (
	// paceLead is how many starts of a pace may be reserved. What is reserved beyond
	// that, and beyond paceLeast, was reserved by a wrong clock, and does not count.
	paceLead  = 10_000
	paceLeast = time.Minute
	// pacesKept is how long an unused pace is remembered.
	pacesKept = time.Minute
	// sweptPaces is how many of them one transaction removes, and sweptAtOnce one call.
	sweptPaces, sweptAtOnce = 500, 10_000
)

// ReservePace reserves n starts at a pace, and returns when the first one is; each of
// the others is a gap of the pace behind the one before it. Of all processes, no two
// starts of one key are closer to each other than the gap of the earlier one. The
// time is that of this process: a clock that is wrong starts early or late by as
// much. An unknown commit is retried, and starts that were reserved by it are left
// out. It costs a read and a mutation.
func (q *Quota) ReservePace(ctx context.Context, pace *layout.Pace, n int) (time.Time, error) {
	var first time.Time
	gap := pace.Gap()
	_, err := q.cluster.Transact(ctx, kv.Options{Tag: "futura-pace", NoSync: true}, func(tx kv.Attempt) error {
		key, now := q.keys.Pace(pace.Key), q.cluster.Now()
		asked := tx.Get(key)
		value, err := asked.Wait(ctx)
		if err != nil {
			return err
		}
		first = now
		if value != nil {
			var record PaceRecord
			if err := layout.Decode(key, value, &record); err != nil {
				return err
			}
			next := time.Unix(0, record.Next)
			if next.After(now) && next.Sub(now) <= max(paceLead*gap, paceLeast) {
				first = next
			}
		}
		tx.Set(key, layout.Encode(&PaceRecord{Next: first.Add(time.Duration(n) * gap).UnixNano()}))
		return nil
	})
	return first, err
}

// SweepPaces removes paces that were not used for a minute, up to 10,000. It returns how many
// it removed. An unknown commit is retried and harmless.
func (q *Quota) SweepPaces(ctx context.Context) (removed int, err error) {
	old := q.cluster.Now().Add(-pacesKept).UnixNano()
	var keys [][]byte
	isOld := func(key, value []byte) bool {
		var record PaceRecord
		return value != nil && layout.Decode(key, value, &record) == nil && record.Next < old // an audit names others
	}
	err = q.cluster.EachKey(ctx, kv.Prefix(q.keys.paces()), func(item kv.KeyValue) error {
		if len(keys) < sweptAtOnce && isOld(item.Key, item.Value) {
			keys = append(keys, item.Key)
		}
		return nil
	})
	for part := range slices.Chunk(keys, sweptPaces) {
		if err != nil {
			break
		}
		var n int
		n, err = q.sweepPaces(ctx, part, isOld)
		removed += n
	}
	return removed, err
}

// sweepPaces removes those of paces that are old.
func (q *Quota) sweepPaces(ctx context.Context, keys [][]byte, isOld func(key, value []byte) bool,
) (removed int, err error) {
	_, err = q.cluster.Transact(ctx, kv.Options{Tag: "futura-pace", NoSync: true}, func(tx kv.Attempt) error {
		removed = 0
		pending := make([]kv.Pending[[]byte], len(keys))
		for i, key := range keys {
			pending[i] = tx.Get(key)
		}
		for i, key := range keys {
			value, err := pending[i].Wait(ctx)
			if err != nil {
				return err
			}
			if isOld(key, value) {
				tx.Clear(key)
				removed++
			}
		}
		return nil
	})
	return removed, err
}
