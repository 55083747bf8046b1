package fdbmodel

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// ErrLeaseLost is returned to a process that consumed jobs and was taken for dead:
// another one consumes them in its place, and it can change nothing any more.
var ErrLeaseLost = errors.New("another process consumes the jobs")

// JobConsumer names a consumer of a log of jobs.
type JobConsumer struct {
	Queue, Name string
}

// String returns QUEUE/NAME.
func (k JobConsumer) String() string { return k.Queue + "/" + k.Name }

// Check returns layout.ErrBadName for names that are none.
func (k JobConsumer) Check() error {
	return errors.Join(layout.CheckJobName("queue", k.Queue), layout.CheckJobName("consumer", k.Name))
}

// JobTake asks to consume jobs in this process.
type JobTake struct {
	// About says where the process runs, for display.
	About string
	// Observed is the record of the present holder that did not change for the
	// dead-after time, by the observer's own clock. Nil takes only what is free.
	Observed []byte
	// Initial is the progress of a consumer that has none yet. What was removed
	// from the log counts as done, and a number beyond its end is its end.
	Initial int64
	// Foreign says that the jobs are in no log of the cluster, whose name only names
	// the progress.
	Foreign bool
}

// JobLease is the right of one process to consume the jobs of a consumer. Its
// methods may be called from many goroutines, but Beat from one at a time.
type JobLease struct {
	cluster  *Cluster
	consumer JobConsumer
	holder   string
	record   layout.JobLease // of the last beat
	// Progress is how far the consumer had come when the lease was taken.
	Progress int64
}

// TakeJobs makes this process the one that a consumer runs in, if none does, or if
// the one that did has not changed its record since it was observed. Otherwise it
// returns no lease, and the present holder's record. No clock decides that a holder
// is dead but that of the observer; on a store that one process opens, those of an
// earlier opening are. It returns ErrBadName. An unknown commit is retried; the
// record says whether it has landed.
func (c *Cluster) TakeJobs(ctx context.Context, k JobConsumer, t JobTake) (lease *JobLease, present []byte, err error) {
	if err := k.Check(); err != nil {
		return nil, nil, err
	}
	holder, err := layout.DrawHex(c.random)
	if err != nil {
		return nil, nil, err
	}
	key := c.keys.JobsNamed(k.Queue, layout.JobsLeasesPart, k.Name)
	_, err = c.transact(ctx, kv.Options{Tag: "futura-lease"}, func(tx kv.Attempt) error {
		lease, present = nil, nil
		value, err := tx.Get(key).Wait(ctx)
		if err != nil {
			return err
		}
		var old layout.JobLease
		if value != nil {
			if err := layout.Decode(key, value, &old); err != nil {
				return err
			}
			if old.Holder != holder && !bytes.Equal(value, t.Observed) && !c.diedBefore(&old) {
				present = value
				return nil
			}
		}
		taken := &JobLease{cluster: c, consumer: k, holder: holder, record: layout.JobLease{Holder: holder, Count: 1,
			About: t.About, Opening: c.opening(), Connection: c.connection(), At: layout.Millis(c.clock.Now())}}
		if taken.Progress, err = c.startProgress(ctx, tx, k, t); err != nil {
			return err
		}
		tx.Set(key, layout.Encode(&taken.record))
		lease = taken
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return lease, present, nil
}

// WatchLease returns a watch that fires when a consumer's process shows a sign of
// life, or gives up its lease. The caller cancels the watch.
func (c *Cluster) WatchLease(ctx context.Context, k JobConsumer) (watch kv.Watch, err error) {
	_, err = c.transact(ctx, kv.Options{Tag: "futura-read"}, func(tx kv.Attempt) error {
		watch = tx.Watch(c.keys.JobsNamed(k.Queue, layout.JobsLeasesPart, k.Name))
		return nil
	})
	if err != nil && watch != nil {
		watch.Cancel()
		watch = nil
	}
	return watch, err
}

// diedBefore reports whether the process that held a lease has ended, because it
// had the store open before this one.
func (c *Cluster) diedBefore(l *layout.JobLease) bool {
	return c.ownsOpening() && l.Connection == "" && l.Opening != c.opening()
}

// startProgress returns a consumer's progress, and writes it if there is none.
func (c *Cluster) startProgress(ctx context.Context, tx kv.Tx, k JobConsumer, t JobTake) (int64, error) {
	progress, found, err := c.readProgress(ctx, tx, k)
	if err != nil || found {
		return progress, err
	}
	if t.Foreign {
		c.writeProgress(tx, k, t.Initial)
		return t.Initial, nil
	}
	first, err := c.readFirst(ctx, tx, k.Queue)
	if err != nil {
		return 0, err
	}
	last, err := c.readHead(ctx, tx.Snapshot(), k.Queue)
	if err != nil {
		return 0, err
	}
	// A removal of jobs that does not know of this consumer must not commit.
	tx.AddWriteConflictKey(c.keys.JobsPart(k.Queue, layout.JobsFirstPart))
	progress = max(min(t.Initial, last), first-1)
	c.writeProgress(tx, k, progress)
	return progress, nil
}

func (c *Cluster) readProgress(ctx context.Context, tx kv.Reader, k JobConsumer) (index int64, found bool, err error) {
	key := c.keys.JobsNamed(k.Queue, layout.JobsProgressPart, k.Name)
	value, err := tx.Get(key).Wait(ctx)
	if err != nil || value == nil {
		return 0, false, err
	}
	var p layout.JobProgress
	err = layout.Decode(key, value, &p)
	return p.Index, true, err
}

func (c *Cluster) writeProgress(tx kv.Tx, k JobConsumer, index int64) {
	p := layout.JobProgress{Index: index, At: layout.Millis(c.clock.Now())}
	tx.Set(c.keys.JobsNamed(k.Queue, layout.JobsProgressPart, k.Name), layout.Encode(&p))
}

// require returns ErrLeaseLost unless the lease is still this one's.
func (l *JobLease) require(ctx context.Context, asked kv.Pending[[]byte]) error {
	key := l.cluster.keys.JobsNamed(l.consumer.Queue, layout.JobsLeasesPart, l.consumer.Name)
	value, err := asked.Wait(ctx)
	if err != nil {
		return err
	}
	var present layout.JobLease
	if value != nil {
		if err := layout.Decode(key, value, &present); err != nil {
			return err
		}
	}
	if present.Holder != l.holder {
		return fmt.Errorf("%w of consumer %v: %s", ErrLeaseLost, l.consumer, present.About)
	}
	return nil
}

func (l *JobLease) ask(tx kv.Reader) kv.Pending[[]byte] {
	return tx.Get(l.cluster.keys.JobsNamed(l.consumer.Queue, layout.JobsLeasesPart, l.consumer.Name))
}

// JobTrouble is the lowest job that fails and is tried again, for display; the zero
// value if there is none.
type JobTrouble struct {
	Index, Attempts int64
	Error           string
}

// maxTrouble is how much of an error is shown.
const maxTrouble = 500

// Beat changes the lease's record, as a sign of life, and returns parked jobs whose
// retry was asked for, up to limit. It returns ErrLeaseLost. Call it once per
// heartbeat. An unknown commit is retried and harmless.
func (l *JobLease) Beat(ctx context.Context, t JobTrouble, limit int) (retries []layout.ParkedJob, err error) {
	c, next := l.cluster, l.record
	next.Count++
	next.Failing, next.Attempts, next.Error = t.Index, t.Attempts, cutText(t.Error, maxTrouble)
	next.At = layout.Millis(c.clock.Now())
	key := c.keys.JobsNamed(l.consumer.Queue, layout.JobsLeasesPart, l.consumer.Name)
	_, err = c.transact(ctx, kv.Options{Tag: "futura-lease", NoSync: true}, func(tx kv.Attempt) error {
		asked := l.ask(tx)
		if retries, err = c.askedRetries(ctx, tx.Snapshot(), l.consumer, limit); err != nil {
			return err
		}
		if err := l.require(ctx, asked); err != nil {
			return err
		}
		tx.Set(key, layout.Encode(&next))
		return nil
	})
	if err == nil {
		l.record = next
	}
	return retries, err
}

// Release gives the lease up, so that another process may take it at once. It does
// nothing if the lease was lost. An unknown commit is retried and harmless.
func (l *JobLease) Release(ctx context.Context) error {
	_, err := l.cluster.transact(ctx, kv.Options{Tag: "futura-lease"}, func(tx kv.Attempt) error {
		err := l.require(ctx, l.ask(tx))
		if errors.Is(err, ErrLeaseLost) {
			return nil
		}
		if err == nil {
			tx.Clear(l.cluster.keys.JobsNamed(l.consumer.Queue, layout.JobsLeasesPart, l.consumer.Name))
		}
		return err
	})
	return err
}

// JobEmit appends jobs to a log within another transaction.
type JobEmit struct {
	Queue string
	Jobs  [][]byte
}

// JobEffects are what jobs have done, in their order.
type JobEffects struct {
	Emits []JobEmit
	// Apply are called in the transaction, each time that it runs. An error that is
	// not one of the store ends the transaction.
	Apply []func(context.Context, kv.Tx) error
}

// Commit advances the consumer's progress from one index to another, together with
// all effects of the jobs between them and the list of those that are parked: all
// of it happens once, or none. It returns ErrLeaseLost, the errors of Apply, and
// ErrTooLarge. An unknown commit is retried; the progress says whether it has
// landed.
func (l *JobLease) Commit(ctx context.Context, from, to int64, parked []layout.ParkedJob, effects JobEffects) error {
	c := l.cluster
	_, err := c.transact(ctx, kv.Options{Tag: "futura-progress"}, func(tx kv.Attempt) error {
		asked := l.ask(tx)
		at, _, err := c.readProgress(ctx, tx, l.consumer)
		if err != nil {
			return err
		}
		if err := l.require(ctx, asked); err != nil {
			return err
		}
		if at == to && tx.MaybeCommitted {
			return nil
		}
		if at != from {
			return fmt.Errorf("%w: the progress of consumer %v is %d, not %d", ErrLeaseLost, l.consumer, at, from)
		}
		for i := range parked {
			c.setParked(tx, l.consumer, &parked[i])
		}
		c.writeProgress(tx, l.consumer, to)
		return c.applyEffects(ctx, tx, effects)
	})
	return err
}

func (c *Cluster) applyEffects(ctx context.Context, tx kv.Tx, effects JobEffects) error {
	for _, e := range effects.Emits {
		head := tx.Get(c.keys.JobsPart(e.Queue, layout.JobsHeadPart))
		if _, err := c.appendTo(ctx, tx, e.Queue, head, e.Jobs); err != nil {
			return err
		}
	}
	for _, apply := range effects.Apply {
		if err := apply(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// jobProgress returns the progress of all consumers of a log, by their names.
func (c *Cluster) jobProgress(ctx context.Context, tx kv.Reader, queue string) (map[string]layout.JobProgress, error) {
	prefix := c.keys.JobsPart(queue, layout.JobsProgressPart)
	all := map[string]layout.JobProgress{}
	page, err := tx.GetRange(kv.Prefix(prefix), kv.RangeOptions{}).Wait(ctx)
	if err != nil {
		return nil, err
	}
	for _, item := range page.Items {
		var p layout.JobProgress
		rest := tuple.NewReader(item.Key[len(prefix):])
		name := rest.Text()
		if err := errors.Join(rest.Err(), layout.Decode(item.Key, item.Value, &p)); err != nil {
			return nil, err
		}
		all[name] = p
	}
	return all, nil
}
