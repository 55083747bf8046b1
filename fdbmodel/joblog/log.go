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

// Limits of one transaction that appends jobs.
const (
	// MaxAppend is the maximum number of jobs, and MaxAppendBytes the maximum size
	// of all of them.
	MaxAppend      = 1000
	MaxAppendBytes = 1 << 20
)

// ErrRemoved is returned by reading jobs that were removed from their log,
// because all of its consumers have done them.
var ErrRemoved = errors.New("the jobs were removed from their log")

// Append is an append of jobs to a log. The log is made by its first job.
type Append struct {
	Queue string
	Jobs  [][]byte
	// Producer and Sequence name the append: one with a number that is not above the
	// producer's last one appends nothing. Keep remembers the producer for ever,
	// and not only for a day after its last append.
	Producer string
	Sequence int64
	Keep     bool
}

// Append appends jobs to a log, whose indexes are contiguous from 1, in one
// transaction. It returns the index of the first one, and whether it appended
// them: it does not if the producer has appended with this sequence before, whose
// first index it then returns, or with a higher one, which is 0. It returns
// ErrBadName, also for a new log named . or .., and fdbmodel.ErrTooLarge for more than
// MaxAppend jobs or MaxAppendBytes, or for one of more than MaxJob. Appends to one
// log conflict with each other, and are repeated, so a process should gather them. An
// unknown commit is retried: the record of the producer says whether it has committed.
func (s *Logs) Append(ctx context.Context, a Append) (first int64, appended bool, err error) {
	if err := errors.Join(layout.CheckName("queue", a.Queue), layout.CheckName("producer", a.Producer)); err != nil {
		return 0, false, err
	}
	if err := checkJobs(a.Jobs); err != nil || len(a.Jobs) == 0 {
		return 0, false, err
	}
	key := s.keys.Producer(a.Queue, a.Producer)
	_, err = s.cluster.Transact(ctx, kv.Options{Tag: "futura-append"}, func(tx kv.Attempt) error {
		first, appended = 0, false
		asked, head := tx.Get(key), tx.Get(s.keys.Head(a.Queue))
		value, err := asked.Wait(ctx)
		if err != nil {
			return err
		}
		var last Producer
		if value != nil {
			if err := layout.Decode(key, value, &last); err != nil {
				return err
			}
			if last.Sequence >= a.Sequence {
				if last.Sequence == a.Sequence {
					first, appended = last.First, tx.MaybeCommitted
				}
				return nil
			}
		}
		if first, err = s.appendTo(ctx, tx, a.Queue, head, a.Jobs); err != nil {
			return err
		}
		appended = true
		now := Producer{Sequence: a.Sequence, First: first, Count: int64(len(a.Jobs)),
			At: layout.Millis(s.cluster.Now()), Keep: a.Keep || last.Keep}
		tx.Set(key, layout.Encode(&now))
		return nil
	})
	return first, appended, err
}

// checkJobs returns fdbmodel.ErrTooLarge for jobs that one transaction can't append.
func checkJobs(jobs [][]byte) error {
	size := 0
	for _, job := range jobs {
		if len(job) > MaxJob {
			return fmt.Errorf("%w: a job of %d bytes, at most %d: put the value apart, and name it in the job",
				fdbmodel.ErrTooLarge, len(job), MaxJob)
		}
		size += len(job)
	}
	if len(jobs) > MaxAppend || size > MaxAppendBytes {
		return fmt.Errorf("%w: %d jobs of %d bytes, at most %d of %d bytes at once", fdbmodel.ErrTooLarge, len(jobs), size,
			MaxAppend, MaxAppendBytes)
	}
	return nil
}

// checkNew returns ErrBadName for a name that a URL can't have as its part.
func checkNew(queue string) error {
	if queue == "." || queue == ".." {
		return fmt.Errorf("%w: queue %q is a step in the path of a URL: use another name", layout.ErrBadName, queue)
	}
	return nil
}

// appendTo appends jobs to a log whose head was requested.
func (s *Logs) appendTo(ctx context.Context, tx kv.Tx, queue string, head kv.Pending[[]byte], jobs [][]byte,
) (first int64, err error) {
	key := s.keys.Head(queue)
	value, err := head.Wait(ctx)
	if err != nil {
		return 0, err
	}
	now := layout.Millis(s.cluster.Now())
	end := Head{CreatedAt: now}
	if value != nil {
		err = layout.Decode(key, value, &end)
	} else {
		err = checkNew(queue)
	}
	if err != nil {
		return 0, err
	}
	first = end.Last + 1
	for _, job := range jobs {
		end.Last++
		tx.Set(s.keys.Job(queue, end.Last), layout.Encode(&Job{Value: job, At: now}))
	}
	tx.Set(key, layout.Encode(&end))
	return first, nil
}

// Producer returns the last append of a producer to a log. It returns fdbmodel.ErrNotFound
// for one that the log does not know, and ErrBadName.
func (s *Logs) Producer(ctx context.Context, queue, name string) (p Producer, err error) {
	if err := errors.Join(layout.CheckName("queue", queue), layout.CheckName("producer", name)); err != nil {
		return p, err
	}
	key := s.keys.Producer(queue, name)
	err = s.cluster.View(ctx, func(tx kv.Attempt) error {
		value, err := tx.Snapshot().Get(key).Wait(ctx)
		if err == nil && value == nil {
			err = fmt.Errorf("producer %s of log %s: %w", name, queue, fdbmodel.ErrNotFound)
		}
		if err != nil {
			return err
		}
		p = Producer{Name: name}
		return layout.Decode(key, value, &p)
	})
	return p, err
}

// Last returns the index of the last job of a log, 0 for a log without jobs or
// one that does not exist.
func (s *Logs) Last(ctx context.Context, queue string) (last int64, err error) {
	err = s.cluster.View(ctx, func(tx kv.Attempt) error {
		last, err = s.readHead(ctx, tx.Snapshot(), queue)
		return err
	})
	return last, err
}

// Watch returns the index of the last job of a log, and a watch that fires when
// others are appended. The caller cancels the watch.
func (s *Logs) Watch(ctx context.Context, queue string) (last int64, watch kv.Watch, err error) {
	_, err = s.cluster.Transact(ctx, kv.Options{Tag: "futura-read"}, func(tx kv.Attempt) error {
		watch = tx.Watch(s.keys.Head(queue))
		last, err = s.readHead(ctx, tx, queue)
		return err
	})
	if err != nil && watch != nil {
		watch.Cancel()
		watch = nil
	}
	return last, watch, err
}

func (s *Logs) readHead(ctx context.Context, tx kv.Reader, queue string) (int64, error) {
	var head Head
	err := s.readJobsPart(ctx, tx.Get(s.keys.Head(queue)), queue, headPart, &head)
	return head.Last, err
}

// readFirst returns the lowest index of a log that was not removed.
func (s *Logs) readFirst(ctx context.Context, tx kv.Reader, queue string) (int64, error) {
	first := First{First: 1}
	err := s.readJobsPart(ctx, tx.Get(s.keys.First(queue)), queue, firstPart, &first)
	return first.First, err
}

// readJobsPart reads a record that may be absent.
func (s *Logs) readJobsPart(ctx context.Context, asked kv.Pending[[]byte], queue, part string, into layout.Record,
) error {
	value, err := asked.Wait(ctx)
	if err != nil || value == nil {
		return err
	}
	return layout.Decode(s.keys.part(queue, part), value, into)
}

// Bounds of one read of jobs.
const (
	jobPage      = 1000
	jobPageBytes = 1 << 20
)

// Read returns jobs of a log from an index on, up to limit and to about a
// mebibyte; none if the log ends before the index. Behind those before one that
// can't be read it ends; it returns ErrNewerRecord or ErrBadRecord if that is the first.
// It returns ErrRemoved if the job at that index was removed.
func (s *Logs) Read(ctx context.Context, queue string, from int64, limit int) (jobs []Job, err error) {
	if limit <= 0 {
		return nil, nil
	}
	prefix := s.keys.part(queue, logPart)
	r := kv.Range{Begin: s.keys.Job(queue, from), End: kv.AfterPrefix(prefix)}
	err = s.cluster.View(ctx, func(tx kv.Attempt) error {
		jobs = jobs[:0]
		o := kv.RangeOptions{Limit: min(limit, jobPage), Bytes: jobPageBytes}
		page, err := tx.Snapshot().GetRange(r, o).Wait(ctx)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			rest := tuple.NewReader(item.Key[len(prefix):])
			job := Job{Index: rest.Int()}
			err := errors.Join(rest.Err(), layout.Decode(item.Key, item.Value, &job))
			if err != nil && len(jobs) > 0 {
				break
			}
			if err != nil {
				return err
			}
			jobs = append(jobs, job)
		}
		if len(jobs) > 0 && jobs[0].Index == from {
			return nil
		}
		first, err := s.readFirst(ctx, tx.Snapshot(), queue)
		if err == nil && from < first {
			err = fmt.Errorf("%w: log %s begins with job %d, not %d", ErrRemoved, queue, first, from)
		}
		return err
	})
	return jobs, err
}

// Trim removes jobs from a log that all of its consumers have passed, but for
// the last keep of those. It removes none from a log without consumers, and returns
// the lowest index that is left. It also forgets producers that were not named by
// the user and have appended nothing for a day: it looks at 1,000, and in its next call
// at those behind them. It returns ErrNewerRecord or ErrBadRecord, and removes nothing, if the progress of a consumer
// can't be read. An unknown commit is retried and harmless.
func (s *Logs) Trim(ctx context.Context, queue string, keep int64) (first int64, err error) {
	var looked []byte
	_, err = s.cluster.Transact(ctx, kv.Options{Tag: "futura-trim"}, func(tx kv.Attempt) error {
		// A consumer that starts writes a conflict on the key that this reads.
		if first, err = s.readFirst(ctx, tx, queue); err != nil {
			return err
		}
		progress, unreadable, err := s.jobProgress(ctx, tx.Snapshot(), queue)
		if err != nil {
			return err
		}
		for name, err := range unreadable {
			return fmt.Errorf("log of jobs %s is not trimmed: how far its consumer %q is can't be read: %w", queue, name, err)
		}
		passed := int64(-1)
		for _, p := range progress {
			if passed < 0 || p.Index < passed {
				passed = p.Index
			}
		}
		if looked, err = s.forgetProducers(ctx, tx, queue); err != nil {
			return err
		}
		if next := passed - keep + 1; next > first {
			tx.ClearRange(kv.Range{Begin: s.keys.Job(queue, first), End: s.keys.Job(queue, next)})
			tx.Set(s.keys.First(queue), layout.Encode(&First{First: next}))
			first = next
		}
		return nil
	})
	if err == nil {
		s.looked.Store(queue, looked)
	}
	return first, err
}

// producerMemory is how long a producer is remembered that the user did not name,
// in milliseconds: far longer than an append is repeated.
const producerMemory = 24 * 60 * 60 * 1000

// producerPage is how many producers are looked at at a time.
const producerPage = 1000

// forgetProducers forgets those of the next page that may be. It returns the last key that it has looked
// at, nil at the end.
func (s *Logs) forgetProducers(ctx context.Context, tx kv.Tx, queue string) (looked []byte, err error) {
	r := kv.Prefix(s.keys.part(queue, producersPart))
	if before, _ := s.looked.Load(queue); before != nil && before.([]byte) != nil {
		r.Begin = kv.After(before.([]byte))
	}
	page, err := tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: producerPage}).Wait(ctx)
	if err != nil {
		return nil, err
	}
	for _, item := range page.Items {
		var p Producer
		if layout.Decode(item.Key, item.Value, &p) == nil && !p.Keep &&
			p.At < layout.Millis(s.cluster.Now())-producerMemory {
			tx.AddReadConflictKey(item.Key)
			tx.Clear(item.Key)
		}
	}
	if page.More {
		looked = page.Items[len(page.Items)-1].Key
	}
	return looked, nil
}
