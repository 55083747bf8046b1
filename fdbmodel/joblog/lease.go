package joblog

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

// Consumer names a consumer of a log of jobs.
type Consumer struct {
	Queue, Name string
}

// String returns QUEUE/NAME.
func (k Consumer) String() string { return k.Queue + "/" + k.Name }

// Check returns layout.ErrBadName unless both names are valid.
func (k Consumer) Check() error {
	return errors.Join(layout.CheckName("queue", k.Queue), layout.CheckName("consumer", k.Name))
}

// Take asks to consume jobs in this process.
type Take struct {
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

// Lease is the right of one process to consume the jobs of a consumer. Its
// methods may be called from many goroutines, but Beat from one at a time.
type Lease struct {
	logs     *Logs
	consumer Consumer
	holder   string
	record   LeaseRecord // of the last beat
	// Progress is how far the consumer had come when the lease was taken.
	Progress int64
}

// Take makes this process the one that a consumer runs in, if none does, or if
// the one that did has not changed its record since it was observed. Otherwise it
// returns no lease, and the present holder's record. No clock decides that a holder
// is dead but that of the observer; on a store that one process opens, those of an
// earlier opening are. A record that can't be read is that of a holder. It returns
// ErrBadName. An unknown commit is retried; the record says whether it has committed.
func (s *Logs) Take(ctx context.Context, k Consumer, t Take) (lease *Lease, present []byte, err error) {
	if err := k.Check(); err != nil {
		return nil, nil, err
	}
	id, err := s.cluster.DrawSessionID()
	if err != nil {
		return nil, nil, err
	}
	holder, key := string(id), s.keys.Lease(k.Queue, k.Name)
	_, err = s.cluster.Transact(ctx, kv.Options{Tag: "futura-lease"}, func(tx kv.Attempt) error {
		lease, present = nil, nil
		value, err := tx.Get(key).Wait(ctx)
		if err != nil {
			return err
		}
		var old LeaseRecord
		if value != nil {
			if layout.Decode(key, value, &old) != nil {
				old = LeaseRecord{Opening: s.traits().Opening} // for all that is known, its holder lives
			}
			if old.Holder != holder && !bytes.Equal(value, t.Observed) && !s.diedBefore(&old) {
				present = value
				return nil
			}
		}
		traits := s.traits()
		taken := &Lease{logs: s, consumer: k, holder: holder, record: LeaseRecord{Holder: holder, Count: 1,
			About: t.About, Opening: traits.Opening, Connection: traits.Connection, At: layout.Millis(s.cluster.Now())}}
		if taken.Progress, err = s.startProgress(ctx, tx, k, t); err != nil {
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
func (s *Logs) WatchLease(ctx context.Context, k Consumer) (watch kv.Watch, err error) {
	_, err = s.cluster.Transact(ctx, kv.Options{Tag: "futura-read"}, func(tx kv.Attempt) error {
		watch = tx.Watch(s.keys.Lease(k.Queue, k.Name))
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
func (s *Logs) diedBefore(l *LeaseRecord) bool {
	traits := s.traits()
	return traits.Connection == "" && traits.Opening != "" && l.Connection == "" && l.Opening != traits.Opening
}

// startProgress returns a consumer's progress, and writes it if there is none.
func (s *Logs) startProgress(ctx context.Context, tx kv.Tx, k Consumer, t Take) (int64, error) {
	progress, found, err := s.readProgress(ctx, tx, k)
	if err != nil || found {
		return progress, err
	}
	if t.Foreign {
		s.writeProgress(tx, k, t.Initial)
		return t.Initial, nil
	}
	first, err := s.readFirst(ctx, tx, k.Queue)
	if err != nil {
		return 0, err
	}
	last, err := s.readHead(ctx, tx.Snapshot(), k.Queue)
	if err != nil {
		return 0, err
	}
	// A removal of jobs that does not know of this consumer must not commit.
	tx.AddWriteConflictKey(s.keys.First(k.Queue))
	progress = max(min(t.Initial, last), first-1)
	s.writeProgress(tx, k, progress)
	return progress, nil
}

func (s *Logs) readProgress(ctx context.Context, tx kv.Reader, k Consumer) (index int64, found bool, err error) {
	key := s.keys.Progress(k.Queue, k.Name)
	value, err := tx.Get(key).Wait(ctx)
	if err != nil || value == nil {
		return 0, false, err
	}
	var p Progress
	err = layout.Decode(key, value, &p)
	return p.Index, true, err
}

func (s *Logs) writeProgress(tx kv.Tx, k Consumer, index int64) {
	p := Progress{Index: index, At: layout.Millis(s.cluster.Now())}
	tx.Set(s.keys.Progress(k.Queue, k.Name), layout.Encode(&p))
}

// require returns ErrLeaseLost unless the lease is still this one's.
func (l *Lease) require(ctx context.Context, asked kv.Pending[[]byte]) error {
	key := l.logs.keys.Lease(l.consumer.Queue, l.consumer.Name)
	value, err := asked.Wait(ctx)
	if err != nil {
		return err
	}
	var present LeaseRecord
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

func (l *Lease) ask(tx kv.Reader) kv.Pending[[]byte] {
	return tx.Get(l.logs.keys.Lease(l.consumer.Queue, l.consumer.Name))
}

// Trouble is the lowest job that fails and is tried again, for display; the zero
// value if there is none.
type Trouble struct {
	Index, Attempts int64
	Error           string
}

// maxTrouble is how much of an error is shown.
const maxTrouble = 500

// Beat changes the lease's record, as a sign of life, and returns parked jobs whose
// retry was asked for, up to limit. It returns ErrLeaseLost. Call it once per
// heartbeat. An unknown commit is retried and harmless.
func (l *Lease) Beat(ctx context.Context, t Trouble, limit int) (retries []ParkedJob, err error) {
	s, next := l.logs, l.record
	next.Count++
	next.Failing, next.Attempts = t.Index, t.Attempts
	next.Error = layout.Shorten(t.Error, maxTrouble)
	next.At = layout.Millis(s.cluster.Now())
	key := s.keys.Lease(l.consumer.Queue, l.consumer.Name)
	_, err = s.cluster.Transact(ctx, kv.Options{Tag: "futura-lease", NoSync: true}, func(tx kv.Attempt) error {
		asked := l.ask(tx)
		if retries, err = s.askedRetries(ctx, tx.Snapshot(), l.consumer, limit); err != nil {
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
func (l *Lease) Release(ctx context.Context) error {
	_, err := l.logs.cluster.Transact(ctx, kv.Options{Tag: "futura-lease"}, func(tx kv.Attempt) error {
		err := l.require(ctx, l.ask(tx))
		if errors.Is(err, ErrLeaseLost) {
			return nil
		}
		if err == nil {
			tx.Clear(l.logs.keys.Lease(l.consumer.Queue, l.consumer.Name))
		}
		return err
	})
	return err
}

// Emit appends jobs to a log within another transaction.
type Emit struct {
	Queue string
	Jobs  [][]byte
}

// Effects are what jobs have done, in their order.
type Effects struct {
	Emits []Emit
	// Apply are called in the transaction, each time that it runs. An error that is
	// not one of the store ends the transaction.
	Apply []func(context.Context, kv.Tx) error
}

// Commit advances the consumer's progress from one index to another, together with
// all effects of the jobs between them and the list of those that are parked: all
// of it happens once, or none. It returns ErrLeaseLost, the errors of Apply, and
// fdbmodel.ErrTooLarge. An unknown commit is retried; the progress says whether it has
// committed.
func (l *Lease) Commit(ctx context.Context, from, to int64, parked []ParkedJob, effects Effects) error {
	s := l.logs
	_, err := s.cluster.Transact(ctx, kv.Options{Tag: "futura-progress"}, func(tx kv.Attempt) error {
		asked := l.ask(tx)
		at, _, err := s.readProgress(ctx, tx, l.consumer)
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
			s.setParked(tx, l.consumer, &parked[i])
		}
		s.writeProgress(tx, l.consumer, to)
		return s.applyEffects(ctx, tx, effects)
	})
	return err
}

func (s *Logs) applyEffects(ctx context.Context, tx kv.Tx, effects Effects) error {
	for _, e := range effects.Emits {
		head := tx.Get(s.keys.Head(e.Queue))
		if _, err := s.appendTo(ctx, tx, e.Queue, head, e.Jobs); err != nil {
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

// jobProgress returns the progress of all consumers of a log, by their names, and why that of others can't be read.
func (s *Logs) jobProgress(ctx context.Context, tx kv.Reader, queue string,
) (all map[string]Progress, unreadable map[string]error, err error) {
	prefix := s.keys.part(queue, progressPart)
	all, unreadable = map[string]Progress{}, map[string]error{}
	page, err := tx.GetRange(kv.Prefix(prefix), kv.RangeOptions{}).Wait(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, item := range page.Items {
		var p Progress
		rest := tuple.NewReader(item.Key[len(prefix):])
		name := rest.Text()
		if err := errors.Join(rest.Err(), layout.Decode(item.Key, item.Value, &p)); err != nil {
			unreadable[name] = err
			continue
		}
		all[name] = p
	}
	return all, unreadable, nil
}
