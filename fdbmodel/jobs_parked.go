package fdbmodel

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

func (c *Cluster) parkedKey(k JobConsumer, index int64) []byte {
	return c.keys.JobsParked(k.Queue, layout.JobsParkedPart, k.Name, index)
}

func (c *Cluster) retryKey(k JobConsumer, index int64) []byte {
	return c.keys.JobsParked(k.Queue, layout.JobsRetryPart, k.Name, index)
}

func (c *Cluster) setParked(tx kv.Tx, k JobConsumer, p *layout.ParkedJob) {
	record := *p
	record.Error, record.At = cutText(p.Error, maxTrouble), layout.Millis(c.clock.Now())
	tx.Set(c.parkedKey(k, p.Index), layout.Encode(&record))
}

// Redo ends the retry of a parked job. With a nil failure the job is done: it is
// parked no more, and its effects happen in the same transaction. Otherwise it
// stays parked, with the failure. Redo does nothing, and returns ErrNotFound, if the
// job was dropped meanwhile. It returns ErrLeaseLost, the errors of Apply, and
// ErrTooLarge. An unknown commit is retried; what it removed says whether it has
// landed.
func (l *JobLease) Redo(ctx context.Context, index int64, failure *layout.ParkedJob, effects JobEffects) error {
	c := l.cluster
	_, err := c.transact(ctx, kv.Options{Tag: "futura-redo"}, func(tx kv.Attempt) error {
		asked := l.ask(tx)
		value, err := tx.Get(c.parkedKey(l.consumer, index)).Wait(ctx)
		if err != nil {
			return err
		}
		if err := l.require(ctx, asked); err != nil {
			return err
		}
		if value == nil {
			if tx.MaybeCommitted && failure == nil {
				return nil
			}
			return fmt.Errorf("parked job %d of consumer %v: %w", index, l.consumer, ErrNotFound)
		}
		tx.Clear(c.retryKey(l.consumer, index))
		if failure != nil {
			c.setParked(tx, l.consumer, failure)
			return nil
		}
		tx.Clear(c.parkedKey(l.consumer, index))
		return c.applyEffects(ctx, tx, effects)
	})
	return err
}

// ParkedJobs returns the jobs that a consumer has put aside, those above an index,
// up to limit. It returns ErrBadName.
func (c *Cluster) ParkedJobs(ctx context.Context, k JobConsumer, after int64, limit int) (parked []layout.ParkedJob,
	err error,
) {
	if err := k.Check(); err != nil {
		return nil, err
	}
	prefix := c.keys.JobsNamed(k.Queue, layout.JobsParkedPart, k.Name)
	r := kv.Range{Begin: c.parkedKey(k, after+1), End: kv.AfterPrefix(prefix)}
	err = c.View(ctx, func(tx kv.Attempt) error {
		parked = nil
		page, err := tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: min(limit, jobPage)}).Wait(ctx)
		if err != nil {
			return err
		}
		marks := make([]kv.Pending[[]byte], 0, len(page.Items))
		for _, item := range page.Items {
			job, err := parkedOf(prefix, item)
			if err != nil {
				return err
			}
			parked = append(parked, job)
			marks = append(marks, tx.Snapshot().Get(c.retryKey(k, job.Index)))
		}
		for i := range marks {
			mark, err := marks[i].Wait(ctx)
			if err != nil {
				return err
			}
			parked[i].Retrying = mark != nil
		}
		return nil
	})
	return parked, err
}

func parkedOf(prefix []byte, item kv.KeyValue) (job layout.ParkedJob, err error) {
	rest := tuple.NewReader(item.Key[len(prefix):])
	job.Index = rest.Int()
	return job, errors.Join(rest.Err(), layout.Decode(item.Key, item.Value, &job))
}

// askedRetries returns parked jobs whose retry was asked for. A mark without a job
// is left out.
func (c *Cluster) askedRetries(ctx context.Context, tx kv.Reader, k JobConsumer, limit int,
) (retries []layout.ParkedJob, err error) {
	if limit <= 0 {
		return nil, nil
	}
	prefix := c.keys.JobsNamed(k.Queue, layout.JobsRetryPart, k.Name)
	page, err := tx.GetRange(kv.Prefix(prefix), kv.RangeOptions{Limit: min(limit, jobPage)}).Wait(ctx)
	if err != nil {
		return nil, err
	}
	for _, item := range page.Items {
		rest := tuple.NewReader(item.Key[len(prefix):])
		job := layout.ParkedJob{Index: rest.Int(), Retrying: true}
		key := c.parkedKey(k, job.Index)
		value, err := tx.Get(key).Wait(ctx)
		switch {
		case err != nil:
			return nil, err
		case value == nil:
			continue
		}
		if err := layout.Decode(key, value, &job); err != nil {
			return nil, err
		}
		retries = append(retries, job)
	}
	return retries, nil
}

// RetryParked asks for another attempt of a parked job: its consumer runs it at its
// next heartbeat, out of the order. It returns ErrNotFound for a job that is not
// parked, and ErrBadName. An unknown commit is retried and harmless.
func (c *Cluster) RetryParked(ctx context.Context, k JobConsumer, index int64) error {
	return c.changeParked(ctx, k, index, func(tx kv.Attempt) { tx.Set(c.retryKey(k, index), layout.Mark()) })
}

// DropParked forgets a parked job: it will not be done. If it is being tried again
// at the moment, that attempt has no effects. It returns ErrNotFound for a job that
// is not parked, and ErrBadName. An unknown commit is retried: if the job is gone
// then, the drop has landed.
func (c *Cluster) DropParked(ctx context.Context, k JobConsumer, index int64) error {
	return c.changeParked(ctx, k, index, func(tx kv.Attempt) {
		tx.Clear(c.parkedKey(k, index))
		tx.Clear(c.retryKey(k, index))
	})
}

func (c *Cluster) changeParked(ctx context.Context, k JobConsumer, index int64, change func(kv.Attempt)) error {
	if err := k.Check(); err != nil {
		return err
	}
	_, err := c.transact(ctx, kv.Options{Tag: "futura-parked"}, func(tx kv.Attempt) error {
		value, err := tx.Get(c.parkedKey(k, index)).Wait(ctx)
		switch {
		case err != nil:
			return err
		case value == nil && tx.MaybeCommitted:
			return nil
		case value == nil:
			return fmt.Errorf("parked job %d of consumer %v: %w", index, k, ErrNotFound)
		}
		change(tx)
		return nil
	})
	return err
}
