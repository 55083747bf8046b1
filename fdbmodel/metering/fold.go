package metering

import (
	"context"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

const (
	foldDays = 7   // days before today that are looked at
	foldMost = 100 // records in one transaction
)

// Fold adds up what starts of a worker that have ended used on each of the last seven
// days before today, so that there is one record for each worker and day, beside those of
// starts that go on. It also removes what is older than MaxDays. It reads the records of those
// days, and writes only where a worker has several of ended starts. Records that it can't read stay, and keep
// no others from being added up. An unknown commit is retried and harmless.
func Fold(ctx context.Context, c *fdbmodel.Cluster) error {
	now, keys := c.Now(), meter.Keys(c.Keys())
	old := kv.Range{Begin: keys.MeteredOn(""), End: keys.MeteredOn(layout.Day(now.AddDate(0, 0, -MaxDays)))}
	if err := meter.Drop(ctx, c, "futura-metered", old); err != nil {
		return err
	}
	within := kv.Range{
		Begin: keys.MeteredOn(layout.Day(now.AddDate(0, 0, -foldDays))), End: keys.MeteredOn(layout.Day(now)),
	}
	var group []meter.MeteredKey
	fold := func() error {
		defer func() { group = group[:0] }()
		if len(group) < 2 {
			return nil
		}
		return foldGroup(ctx, c, group)
	}
	err := c.EachKey(ctx, within, func(item kv.KeyValue) error {
		key, err := keys.ParseMetered(item.Key)
		if err != nil {
			return nil // an audit reports it
		}
		if n := len(group); n > 0 && !group[0].SameWorker(key) || n == foldMost {
			if err := fold(); err != nil {
				return err
			}
		}
		group = append(group, key)
		return nil
	})
	if err != nil {
		return err
	}
	return fold()
}

// foldGroup adds up what ended starts of one worker used on one day. The record of a start
// that has no fence any more has no other writer.
func foldGroup(ctx context.Context, c *fdbmodel.Cluster, starts []meter.MeteredKey) error {
	folded, keys := starts[0], meter.Keys(c.Keys())
	folded.Membership = ""
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-metered"}, func(tx kv.Attempt) error {
		into := tx.Get(keys.Metered(folded))
		var fences, records []kv.Pending[[]byte]
		for _, key := range starts {
			fences = append(fences, tx.Get(c.Keys().Worker(key.Membership, layout.WorkerAlive)))
			records = append(records, tx.Get(keys.Metered(key)))
		}
		sum := meter.Metered{}
		if _, err := meter.AddStored(ctx, keys.Metered(folded), into, &sum); layout.IsUnreadable(err) {
			return nil
		} else if err != nil {
			return err
		}
		ended := 0
		for i, key := range starts {
			alive, err := fences[i].Wait(ctx)
			if err != nil {
				return err
			}
			value, err := records[i].Wait(ctx)
			if err != nil {
				return err
			}
			if key.Membership == "" || alive != nil || value == nil {
				continue
			}
			if _, err := meter.AddStored(ctx, keys.Metered(key), records[i], &sum); layout.IsUnreadable(err) {
				continue
			} else if err != nil {
				return err
			}
			tx.Clear(keys.Metered(key))
			ended++
		}
		if ended > 0 {
			tx.Set(keys.Metered(folded), layout.Encode(&sum))
		}
		return nil
	})
	return err
}
