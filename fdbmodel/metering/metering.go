// Package metering reads what the workers of a cluster have used, by worker and day, and keeps
// it small. A worker counts what its attempts use, and writes it with its heartbeats.
package metering

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// MaxDays is the most days that Read reads, and what is older is removed.
const MaxDays = 400

// Use is what a worker, by a name that survives its restarts, has used on a day.
type Use struct {
	// Day is of UTC, such as 2026-01-31.
	Day string
	// Kind is Peer, whose Name is its libp2p peer id, or Worker.
	Kind, Name string
	meter.Metered
}

// Read calls fn with what the workers of a cluster have used, from one day to another, both
// included, by day and name. It contains what they had told with their last heartbeats. It reads
// one page of up to 500 keys after the other, each from a snapshot of its own, and returns the
// first error of fn. ErrBadRecord or ErrNewerRecord, after everything else, says that the sums are too low: of
// records that can't be read it names the first. ErrBadSpec is returned for days that can't be, and for more
// than MaxDays.
func Read(ctx context.Context, c *fdbmodel.Cluster, from, to time.Time, fn func(*Use) error) error {
	first, last := layout.Day(from), layout.Day(to)
	if from, to = from.UTC().Truncate(24*time.Hour), to.UTC().Truncate(24*time.Hour); from.After(to) ||
		to.Sub(from) >= MaxDays*24*time.Hour {
		return fmt.Errorf("%w: use from %s to %s: give a first day, and a last one less than %d days later",
			layout.ErrBadSpec, first, last, MaxDays)
	}
	var by meter.MeteredKey
	var one *Use
	pass := func() error {
		if one == nil {
			return nil
		}
		return fn(one)
	}
	keys := meter.Keys(c.Keys())
	within := kv.Range{Begin: keys.MeteredOn(first), End: kv.AfterPrefix(keys.MeteredOn(last))}
	err := each(ctx, c, within, func(key meter.MeteredKey, use *meter.Metered) error {
		if one == nil || !by.SameWorker(key) {
			if err := pass(); err != nil {
				return err
			}
			by, one = key, &Use{Day: key.Day, Kind: key.Kind, Name: key.Name}
		}
		one.Add(use)
		return nil
	})
	if err != nil && !layout.IsUnreadable(err) {
		return err
	}
	return cmp.Or(pass(), err)
}

// each calls fn with all records in a range that can be read, and returns of the others the error of the first.
func each(ctx context.Context, c *fdbmodel.Cluster, r kv.Range, fn func(meter.MeteredKey, *meter.Metered) error,
) error {
	var damaged error
	err := c.EachKey(ctx, r, func(item kv.KeyValue) error {
		var use meter.Metered
		key, err := meter.Keys(c.Keys()).ParseMetered(item.Key)
		if err == nil {
			err = layout.Decode(item.Key, item.Value, &use)
		}
		if err != nil {
			damaged = cmp.Or(damaged, err)
			return nil
		}
		return fn(key, &use)
	})
	return cmp.Or(err, damaged)
}
