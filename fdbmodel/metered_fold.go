package fdbmodel

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

const (
	foldDays = 7   // days before today that are looked at
	foldMost = 100 // records in one transaction
)

// FoldMetered adds up what starts of a worker that have ended used on each of the last seven
// days before today, so that there is one record for each worker and day, beside those of
// starts that go on. It also removes what is older than MaxMeteredDays. It reads the records of those
// days, and writes only where a worker has several of ended starts. An unknown commit is
// retried and harmless.
func (c *Cluster) FoldMetered(ctx context.Context) error {
	now := c.clock.Now()
	if err := c.dropMetered(ctx, layout.Day(now.AddDate(0, 0, -MaxMeteredDays))); err != nil {
		return err
	}
	within := kv.Range{
		Begin: c.keys.MeteredOn(layout.Day(now.AddDate(0, 0, -foldDays))), End: c.keys.MeteredOn(layout.Day(now)),
	}
	var group []layout.MeteredKey
	fold := func() error {
		defer func() { group = group[:0] }()
		if len(group) < 2 {
			return nil
		}
		return c.foldMetered(ctx, group)
	}
	err := c.eachMetered(ctx, within, func(key layout.MeteredKey, _ *layout.Metered) error {
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

// foldMetered adds up what ended starts of one worker used on one day. Nobody else writes
// the record of a start that has no fence any more.
func (c *Cluster) foldMetered(ctx context.Context, keys []layout.MeteredKey) error {
	folded := keys[0]
	folded.Membership = ""
	_, err := c.Transact(ctx, kv.Options{Tag: "futura-metered"}, func(tx kv.Attempt) error {
		into := tx.Get(c.keys.Metered(folded))
		var fences, records []kv.Pending[[]byte]
		for _, key := range keys {
			fences = append(fences, tx.Get(c.keys.Worker(key.Membership, layout.WorkerAlive)))
			records = append(records, tx.Get(c.keys.Metered(key)))
		}
		sum := layout.Metered{}
		if err := addMetered(ctx, c.keys.Metered(folded), into, &sum); err != nil {
			return err
		}
		ended := 0
		for i, key := range keys {
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
			if err := addMetered(ctx, c.keys.Metered(key), records[i], &sum); err != nil {
				return err
			}
			tx.Clear(c.keys.Metered(key))
			ended++
		}
		if ended > 0 {
			tx.Set(c.keys.Metered(folded), layout.Encode(&sum))
		}
		return nil
	})
	return err
}

// addMetered adds a record, if there is one.
func addMetered(ctx context.Context, key []byte, asked kv.Pending[[]byte], to *layout.Metered) error {
	value, err := asked.Wait(ctx)
	if err != nil || value == nil {
		return err
	}
	var use layout.Metered
	if err := layout.Decode(key, value, &use); err != nil {
		return err
	}
	to.Add(&use)
	return nil
}

// dropMetered removes what was used before a day.
func (c *Cluster) dropMetered(ctx context.Context, day string) error {
	before := kv.Range{Begin: c.keys.MeteredOn(""), End: c.keys.MeteredOn(day)}
	var page kv.Page
	err := c.View(ctx, func(tx kv.Attempt) (err error) {
		page, err = tx.Snapshot().GetRange(before, kv.RangeOptions{Limit: 1}).Wait(ctx)
		return err
	})
	if err != nil || len(page.Items) == 0 {
		return err
	}
	_, err = c.Transact(ctx, kv.Options{Tag: "futura-metered"}, func(tx kv.Attempt) error {
		tx.ClearRange(before)
		return nil
	})
	return err
}
