package joblog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// Log is a log of jobs with its consumers.
type Log struct {
	Name string
	// First is the lowest index that was not removed, and Last the highest that was
	// appended.
	First, Last int64
	Consumers   []ConsumerState
}

// ConsumerState is how far a consumer has come, and where it runs.
type ConsumerState struct {
	Name     string
	Progress Progress
	// Lease is nil if no process holds it. The holder may be dead.
	Lease *LeaseRecord
	// Unreadable is set if the progress or the lease can't be read: it is zero then.
	Unreadable bool
	// Parked is how many jobs are put aside, counted up to MaxParkedCount.
	Parked int
	sign   []byte // the lease as it is stored
}

// MaxParkedCount is how many parked jobs of a consumer are counted.
const MaxParkedCount = 1000

// List returns all logs of jobs with their consumers, in the order of their
// names. Each is read at a version of its own.
func (s *Logs) List(ctx context.Context) ([]Log, error) {
	return s.Page(ctx, "", math.MaxInt)
}

// Page returns the logs of jobs whose names come after one, at most limit, in
// their order: fewer at the end alone. Each is read at a version of its own. It costs a read for each of limit
// names in each shard, and some for each log. Those that can't be read are left out.
func (s *Logs) Page(ctx context.Context, after string, limit int) (queues []Log, err error) {
	for more := true; more && len(queues) < limit; {
		left := limit - len(queues)
		names, err := s.names(ctx, after, left)
		if err != nil {
			return nil, err
		}
		more = len(names) == left
		for _, after = range names {
			q, err := s.Get(ctx, after)
			switch {
			case errors.Is(err, fdbmodel.ErrNotFound):
			case errors.Is(err, layout.ErrBadName), layout.IsUnreadable(err): // a check names it
			case err != nil:
				return nil, err
			default:
				queues = append(queues, q)
			}
		}
	}
	return queues, nil
}

// names returns the names of logs after one, at most limit, in their order.
func (s *Logs) names(ctx context.Context, after string, limit int) (names []string, err error) {
	for shard := range s.cluster.Config().Shards {
		prefix := layout.Keyspace(s.keys).Shard(shard, Subspace)
		r := kv.Prefix(prefix)
		if after != "" {
			r.Begin = kv.AfterPrefix(tuple.AppendString(slices.Clip(prefix), after))
		}
		for range limit {
			name, err := s.firstName(ctx, prefix, r)
			if err != nil {
				return nil, err
			}
			if name == "" {
				break
			}
			names = append(names, name)
			r.Begin = kv.AfterPrefix(tuple.AppendString(slices.Clip(prefix), name))
		}
	}
	slices.Sort(names)
	return names[:min(limit, len(names))], nil
}

// firstName returns the name of the first log in a range, empty if there is none.
func (s *Logs) firstName(ctx context.Context, prefix []byte, r kv.Range) (name string, err error) {
	err = s.cluster.View(ctx, func(tx kv.Attempt) error {
		name = ""
		for left := r; name == ""; {
			page, err := tx.Snapshot().GetRange(left, kv.RangeOptions{Limit: 1}).Wait(ctx)
			if err != nil || len(page.Items) == 0 {
				return err
			}
			left.Begin = kv.After(page.Items[0].Key)
			rest := tuple.NewReader(page.Items[0].Key[len(prefix):])
			name = rest.Text() // empty for other keys, which a check reports
		}
		return nil
	})
	return name, err
}

// Get returns a log of jobs with its consumers. It returns fdbmodel.ErrNotFound for one
// without jobs and consumers, and ErrBadName.
func (s *Logs) Get(ctx context.Context, queue string) (q Log, err error) {
	if err := layout.CheckName("queue", queue); err != nil {
		return q, err
	}
	err = s.cluster.View(ctx, func(tx kv.Attempt) error {
		q = Log{Name: queue}
		if q.Last, err = s.readHead(ctx, tx.Snapshot(), queue); err != nil {
			return err
		}
		if q.First, err = s.readFirst(ctx, tx.Snapshot(), queue); err != nil {
			return err
		}
		if q.Consumers, err = s.consumers(ctx, tx.Snapshot(), queue); err != nil {
			return err
		}
		if q.Last == 0 && len(q.Consumers) == 0 {
			return fmt.Errorf("log of jobs %s: %w", queue, fdbmodel.ErrNotFound)
		}
		return nil
	})
	return q, err
}

// consumers returns the consumers of a log by name.
func (s *Logs) consumers(ctx context.Context, tx kv.Reader, queue string) (all []ConsumerState, err error) {
	progress, unreadable, err := s.jobProgress(ctx, tx, queue)
	if err != nil {
		return nil, err
	}
	for name := range unreadable {
		progress[name] = Progress{}
	}
	for _, name := range slices.Sorted(maps.Keys(progress)) {
		state := ConsumerState{Name: name, Progress: progress[name], Unreadable: unreadable[name] != nil}
		if err := s.addHolder(ctx, tx, queue, &state); err != nil {
			return nil, err
		}
		all = append(all, state)
	}
	return all, nil
}

// FindConsumer returns fdbmodel.ErrNotFound unless a log of jobs has a consumer of that name,
// and ErrBadName.
func (s *Logs) FindConsumer(ctx context.Context, k Consumer) error {
	if err := k.Check(); err != nil {
		return err
	}
	return s.cluster.View(ctx, func(tx kv.Attempt) error {
		value, err := tx.Snapshot().Get(s.keys.Progress(k.Queue, k.Name)).Wait(ctx)
		if err == nil && value == nil {
			err = fmt.Errorf("consumer %v: %w", k, fdbmodel.ErrNotFound)
		}
		return err
	})
}

// addHolder adds the lease of a consumer, and counts what it has parked.
func (s *Logs) addHolder(ctx context.Context, tx kv.Reader, queue string, state *ConsumerState) error {
	key := s.keys.Lease(queue, state.Name)
	parked := tx.GetRange(kv.Prefix(s.keys.named(queue, parkedPart, state.Name)),
		kv.RangeOptions{Limit: MaxParkedCount})
	value, err := tx.Get(key).Wait(ctx)
	if err != nil {
		return err
	}
	if value != nil {
		state.sign, state.Lease = value, &LeaseRecord{}
		if err := layout.Decode(key, value, state.Lease); err != nil {
			state.Lease, state.Unreadable = nil, true
		}
	}
	page, err := parked.Wait(ctx)
	state.Parked = len(page.Items)
	return err
}

// SignsOfLife returns the leases of consumers that may be alive, by their names: those that can't be read
// too, and those of logs that can't be.
func (s *Logs) SignsOfLife(ctx context.Context) (map[string][]byte, error) {
	queues, err := s.names(ctx, "", math.MaxInt)
	signs := map[string][]byte{}
	for _, queue := range queues {
		var consumers []ConsumerState
		err := s.cluster.View(ctx, func(tx kv.Attempt) (err error) {
			consumers, err = s.consumers(ctx, tx.Snapshot(), queue)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, consumer := range consumers {
			if consumer.sign != nil && (consumer.Lease == nil || !s.diedBefore(consumer.Lease)) {
				signs["consumer "+queue+"/"+consumer.Name] = consumer.sign
			}
		}
	}
	return signs, err
}

// Drop removes a log of jobs with its progress, its parked jobs and its
// producers; with a consumer's name, that consumer alone. It returns fdbmodel.ErrInUse while a
// process holds the lease of a consumer that is to be removed, unless force is set:
// that process then ends with ErrLeaseLost. It returns fdbmodel.ErrNotFound, and ErrBadName.
// An unknown commit is retried: if there is nothing left then, the removal has
// committed.
func (s *Logs) Drop(ctx context.Context, queue, consumer string, force bool) error {
	err := layout.CheckName("queue", queue)
	if consumer != "" {
		err = Consumer{queue, consumer}.Check()
	}
	if err != nil {
		return err
	}
	parts := []string{leasesPart, parkedPart, progressPart, retryPart}
	_, err = s.cluster.Transact(ctx, kv.Options{Tag: "futura-dropjobs"}, func(tx kv.Attempt) error {
		all := kv.Prefix(s.keys.log(queue))
		leases := kv.Prefix(s.keys.part(queue, leasesPart))
		ranges := []kv.Range{all}
		if consumer != "" {
			all = kv.Prefix(s.keys.Progress(queue, consumer))
			leases = kv.Prefix(s.keys.Lease(queue, consumer))
			ranges = nil
			for _, part := range parts {
				ranges = append(ranges, kv.Prefix(s.keys.named(queue, part, consumer)))
			}
		}
		held, err := tx.GetRange(leases, kv.RangeOptions{Limit: 1}).Wait(ctx)
		if err != nil {
			return err
		}
		there, err := tx.GetRange(all, kv.RangeOptions{Limit: 1}).Wait(ctx)
		switch {
		case err != nil:
			return err
		case len(held.Items) > 0 && !force:
			return fmt.Errorf("log of jobs %s: %w: stop its consumers first, or force it", queue, fdbmodel.ErrInUse)
		case len(there.Items) == 0 && !tx.MaybeCommitted:
			what := "log of jobs " + queue
			if consumer != "" {
				what = "consumer " + queue + "/" + consumer
			}
			return fmt.Errorf("%s: %w", what, fdbmodel.ErrNotFound)
		}
		// The late twin of an attempt removes no log that was begun anew.
		tx.AddReadConflictKey(s.keys.Head(queue))
		for _, r := range ranges {
			tx.ClearRange(r)
		}
		return nil
	})
	return err
}
