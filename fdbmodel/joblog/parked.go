package joblog

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

func (s *Logs) parkedKey(k Consumer, index int64) []byte {
	return s.keys.Parked(k.Queue, k.Name, index)
}

func (s *Logs) retryKey(k Consumer, index int64) []byte {
	return s.keys.Retry(k.Queue, k.Name, index)
}

func (s *Logs) setParked(tx kv.Tx, k Consumer, p *ParkedJob) {
	record := *p
	record.Error, record.At = layout.Shorten(p.Error, maxTrouble), layout.Millis(s.cluster.Now())
	tx.Set(s.parkedKey(k, p.Index), layout.Encode(&record))
}

// Redo ends the retry of a parked job. With a nil failure the job is done: it is
// parked no more, and its effects happen in the same transaction. Otherwise it
// stays parked, with the failure. Redo does nothing, and returns fdbmodel.ErrNotFound, if the
// job was dropped meanwhile. It returns ErrLeaseLost, the errors of Apply, and
// fdbmodel.ErrTooLarge. An unknown commit is retried; what it removed says whether it has
// committed.
func (l *Lease) Redo(ctx context.Context, index int64, failure *ParkedJob, effects Effects) error {
	s := l.logs
	_, err := s.cluster.Transact(ctx, kv.Options{Tag: "futura-redo"}, func(tx kv.Attempt) error {
		asked := l.ask(tx)
		value, err := tx.Get(s.parkedKey(l.consumer, index)).Wait(ctx)
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
			return fmt.Errorf("parked job %d of consumer %v: %w", index, l.consumer, fdbmodel.ErrNotFound)
		}
		tx.Clear(s.retryKey(l.consumer, index))
		if failure != nil {
			s.setParked(tx, l.consumer, failure)
			return nil
		}
		tx.Clear(s.parkedKey(l.consumer, index))
		return s.applyEffects(ctx, tx, effects)
	})
	return err
}

// Parked returns the jobs that a consumer has put aside, those above an index,
// up to limit and 1,000: fewer at the end alone. Those that can't be read are left out.
// It returns ErrBadName.
func (s *Logs) Parked(ctx context.Context, k Consumer, after int64, limit int) (parked []ParkedJob,
	err error,
) {
	if err := k.Check(); err != nil || limit <= 0 {
		return nil, err
	}
	limit = min(limit, jobPage)
	prefix := s.keys.named(k.Queue, parkedPart, k.Name)
	r := kv.Range{Begin: kv.After(s.parkedKey(k, after)), End: kv.AfterPrefix(prefix)}
	err = s.cluster.View(ctx, func(tx kv.Attempt) error {
		parked = nil
		var marks []kv.Pending[[]byte]
		err := eachKey(ctx, tx.Snapshot(), r, limit, func(item kv.KeyValue) bool {
			if job, err := parkedOf(prefix, item); err == nil { // a check names others
				parked = append(parked, job)
				marks = append(marks, tx.Snapshot().Get(s.retryKey(k, job.Index)))
			}
			return len(parked) < limit
		})
		if err != nil {
			return err
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

// eachKey calls fn with the keys of a range, of which it reads a page at a time, until it returns false.
func eachKey(ctx context.Context, tx kv.Reader, r kv.Range, page int, fn func(kv.KeyValue) bool) error {
	for {
		found, err := tx.GetRange(r, kv.RangeOptions{Limit: page}).Wait(ctx)
		if err != nil {
			return err
		}
		for _, item := range found.Items {
			if !fn(item) {
				return nil
			}
		}
		if !found.More {
			return nil
		}
		r.Begin = kv.After(found.Items[len(found.Items)-1].Key)
	}
}

func parkedOf(prefix []byte, item kv.KeyValue) (job ParkedJob, err error) {
	rest := tuple.NewReader(item.Key[len(prefix):])
	job.Index = rest.Int()
	return job, errors.Join(rest.Err(), layout.Decode(item.Key, item.Value, &job))
}

// askedRetries returns parked jobs whose retry was asked for, up to limit. A mark without a job,
// or with one that can't be read, is left out.
func (s *Logs) askedRetries(ctx context.Context, tx kv.Reader, k Consumer, limit int,
) (retries []ParkedJob, err error) {
	if limit <= 0 {
		return nil, nil
	}
	prefix := s.keys.named(k.Queue, retryPart, k.Name)
	var failed error
	err = eachKey(ctx, tx, kv.Prefix(prefix), min(limit, jobPage), func(item kv.KeyValue) bool {
		rest := tuple.NewReader(item.Key[len(prefix):])
		job := ParkedJob{Index: rest.Int(), Retrying: true}
		key := s.parkedKey(k, job.Index)
		var value []byte
		if value, failed = tx.Get(key).Wait(ctx); failed != nil {
			return false
		}
		if value != nil && layout.Decode(key, value, &job) == nil { // a check names others
			retries = append(retries, job)
		}
		return len(retries) < limit
	})
	return retries, errors.Join(err, failed)
}

// RetryParked asks for another attempt of a parked job: its consumer runs it at its
// next heartbeat, out of the order. It returns fdbmodel.ErrNotFound for a job that is not
// parked, and ErrBadName. An unknown commit is retried and harmless.
func (s *Logs) RetryParked(ctx context.Context, k Consumer, index int64) error {
	return s.changeParked(ctx, k, index, func(tx kv.Attempt) { tx.Set(s.retryKey(k, index), layout.Mark()) })
}

// DropParked forgets a parked job: it will not be done. If it is being tried again
// at the moment, that attempt has no effects. It returns fdbmodel.ErrNotFound for a job that
// is not parked, and ErrBadName. An unknown commit is retried: if the job is gone
// then, the drop has committed.
func (s *Logs) DropParked(ctx context.Context, k Consumer, index int64) error {
	return s.changeParked(ctx, k, index, func(tx kv.Attempt) {
		tx.Clear(s.parkedKey(k, index))
		tx.Clear(s.retryKey(k, index))
	})
}

func (s *Logs) changeParked(ctx context.Context, k Consumer, index int64, change func(kv.Attempt)) error {
	if err := k.Check(); err != nil {
		return err
	}
	_, err := s.cluster.Transact(ctx, kv.Options{Tag: "futura-parked"}, func(tx kv.Attempt) error {
		value, err := tx.Get(s.parkedKey(k, index)).Wait(ctx)
		switch {
		case err != nil:
			return err
		case value == nil && tx.MaybeCommitted:
			return nil
		case value == nil:
			return fmt.Errorf("parked job %d of consumer %v: %w", index, k, fdbmodel.ErrNotFound)
		}
		change(tx)
		return nil
	})
	return err
}
