package fdbmodel

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// MaxAssign is the maximum number of futures in one transaction of Assign or
// Unassign.
const MaxAssign = 100

// maxReason is the longest reason for an assignment, in bytes.
const maxReason = 64

func checkReason(reason string) error {
	if len(reason) > maxReason {
		return fmt.Errorf("%w: assigned for a reason of %d bytes: at most %d", layout.ErrBadSpec, len(reason), maxReason)
	}
	return nil
}

// Assign gives ready futures to a worker, and held ones that are delayed: each
// leaves the pool, or the held futures, and waits for this worker alone, which
// takes it before those of the pool. It returns one outcome for each: Applied;
// Already, if it is assigned to this worker; Refused, if it is not ready, does
// not exist, or is assigned to another worker, from which it must be unassigned
// first. It returns ErrNotFound if the worker is not registered, and ErrUnfit
// if it can never run one of the futures: it does not serve the queue, does not
// know the function, or is too small. Each MaxAssign futures are one
// transaction; on an error the outcomes of the transactions before it are
// returned. An unknown commit is retried: futures whose assignment landed
// return Already, or Refused if the worker has claimed them since.
//
// reason, of at most 64 bytes, is recorded with each future, and the futures
// with workers are counted separately for each reason; see OwnerOpen.
//
// When the worker fails an attempt, can't run the future, leaves or dies, the
// future is unassigned.
func (c *Cluster) Assign(ctx context.Context, worker layout.WorkerID, reason string, ids []layout.ID,
) ([]Outcome, error) {
	if err := checkReason(reason); err != nil {
		return nil, err
	}
	return c.eachAssign(ctx, ids, func(ids []layout.ID) ([]Outcome, error) {
		var outcomes []Outcome
		_, err := c.transact(ctx, kv.Options{Tag: "futura-assign"}, func(tx kv.Attempt) (err error) {
			outcomes, _, err = c.assignIn(ctx, tx, worker, reason, ids)
			return err
		})
		if err == nil && slices.Contains(outcomes, Applied) {
			c.hub.wakeWorker(worker)
		}
		return outcomes, err
	})
}

// Unassign takes ready futures from a worker that has not claimed them: they go
// back to the pool, or to the held futures. It returns one outcome for each:
// Applied, or Refused if it does not wait for this worker. Each MaxAssign
// futures are one transaction. An unknown commit is retried: futures that were
// unassigned by then return Refused.
func (c *Cluster) Unassign(ctx context.Context, worker layout.WorkerID, ids []layout.ID) ([]Outcome, error) {
	return c.eachAssign(ctx, ids, func(ids []layout.ID) ([]Outcome, error) {
		var outcomes []Outcome
		var then aftermath
		result, err := c.transact(ctx, kv.Options{Tag: "futura-assign"}, func(tx kv.Attempt) error {
			w := c.changes(tx)
			event := Event{Kind: EventUnassign, Token: layout.Token{Worker: worker}, Now: c.clock.Now()}
			moved, err := c.moveAssigned(ctx, tx, w, event, ids, nil)
			if err != nil {
				return err
			}
			w.flush()
			outcomes, then = moved.outcomes, w.aftermath()
			return nil
		})
		if err == nil {
			c.follow(ctx, result.Version, then)
		}
		return outcomes, err
	})
}

func (c *Cluster) eachAssign(_ context.Context, ids []layout.ID, fn func([]layout.ID) ([]Outcome, error),
) ([]Outcome, error) {
	outcomes := make([]Outcome, 0, len(ids))
	for part := range slices.Chunk(ids, MaxAssign) {
		done, err := fn(part)
		if err != nil {
			return outcomes, err
		}
		outcomes = append(outcomes, done...)
	}
	return outcomes, nil
}

// assignIn returns the outcomes, and which of the futures are then with the
// worker for that reason.
func (c *Cluster) assignIn(ctx context.Context, tx kv.Attempt, worker layout.WorkerID, reason string, ids []layout.ID,
) ([]Outcome, []bool, error) {
	info, err := c.requireAlive(ctx, tx, worker)
	if err != nil {
		return nil, nil, err
	}
	w := c.changes(tx)
	event := Event{Kind: EventAssign, Token: layout.Token{Worker: worker}, Reason: reason, Now: c.clock.Now()}
	moved, err := c.moveAssigned(ctx, tx, w, event, ids, info.CanRun)
	if err != nil {
		return nil, nil, err
	}
	if slices.Contains(moved.outcomes, Applied) {
		w.callWorker(worker)
	}
	w.flush()
	return moved.outcomes, moved.there, nil
}

// requireAlive reads a worker's fence serializably: a reaper's clear conflicts.
func (c *Cluster) requireAlive(ctx context.Context, tx kv.Reader, worker layout.WorkerID) (*layout.WorkerInfo, error) {
	key := c.keys.Worker(worker, layout.WorkerAlive)
	value, err := tx.Get(key).Wait(ctx)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return nil, fmt.Errorf("worker %s is not registered: %w", worker, ErrNotFound)
	}
	info := &layout.WorkerInfo{ID: worker}
	if err := layout.Decode(key, value, info); err != nil {
		return nil, err
	}
	info.ID = worker
	return info, nil
}

// callWorker marks a worker as one with assignments, until it is forgotten, and
// wakes it.
func (w *changes) callWorker(worker layout.WorkerID) {
	w.tx.Set(w.keys.Worker(worker, layout.WorkerAssigned), layout.Mark())
	w.tx.SetVersionstampedValue(w.keys.Worker(worker, layout.WorkerWake), layout.EncodeBell(), layout.StampOffset)
}

// movedFutures holds the results of assigning or unassigning futures.
type movedFutures struct {
	outcomes []Outcome
	there    []bool // is with the event's worker for the event's reason
}

// moveAssigned applies Assign or Unassign to futures.
func (c *Cluster) moveAssigned(ctx context.Context, tx kv.Tx, w *changes, e Event, ids []layout.ID,
	check func(*layout.Spec) error,
) (movedFutures, error) {
	moved := movedFutures{outcomes: make([]Outcome, len(ids)), there: make([]bool, len(ids))}
	pending := read.Records(tx, c.keys, ids)
	for i, id := range ids {
		row, found, err := pending[i].Wait(ctx)
		if err != nil {
			return moved, err
		}
		if moved.outcomes[i] = Refused; !found || row.Spec == nil || slices.Contains(ids[:i], id) {
			continue
		}
		after, outcome := Next(row, e)
		moved.outcomes[i] = outcome
		moved.there[i] = after.Open() && after.Attempts.Assigned == e.Token.Worker && after.Attempts.Reason == e.Reason
		if outcome != Applied {
			continue
		}
		if check != nil {
			if err := check(row.Needs()); err != nil {
				return moved, fmt.Errorf("future %s: %w", id, err)
			}
		}
		w.apply(&row, &after)
	}
	return moved, nil
}

// dropAssigned unassigns everything that waits for a worker alone, a batch in
// each transaction. It returns how many futures it moved, and whether some were
// kept because they can't be read. dead requires that the worker is dead.
func (c *Cluster) dropAssigned(ctx context.Context, worker layout.WorkerID, dead bool,
) (total int, kept bool, err error) {
	from := c.keys.AssignedTo(worker)
	for {
		var page droppedPage
		result, err := c.transact(ctx, kv.Options{Tag: "futura-reap"}, func(tx kv.Attempt) error {
			if dead {
				if err := c.requireDead(ctx, tx, worker); err != nil {
					return err
				}
			}
			var err error
			page, err = c.dropAssignedIn(ctx, tx, worker, from)
			return err
		})
		if err != nil {
			return total, kept, err
		}
		if !dead {
			// The worker is still a member: what must be near its objects would come back.
			page.then.settling = nil
		}
		c.follow(ctx, result.Version, page.then)
		total, kept = total+page.moved, kept || page.kept
		if from = page.next; from == nil {
			return total, kept, nil
		}
	}
}

// droppedPage holds the results of moving a page of assignments.
type droppedPage struct {
	moved int
	kept  bool // some can't be read
	then  aftermath
	next  []byte // where the next page may be, nil after the last one
}

// dropAssignedIn moves a page of the futures that wait for a worker.
func (c *Cluster) dropAssignedIn(ctx context.Context, tx kv.Tx, worker layout.WorkerID, from []byte,
) (droppedPage, error) {
	var dropped droppedPage
	prefix := c.keys.AssignedTo(worker)
	r := kv.Range{Begin: from, End: kv.AfterPrefix(prefix)}
	page, err := tx.GetRange(r, kv.RangeOptions{Limit: janitorBatch}).Wait(ctx)
	if err != nil || len(page.Items) == 0 {
		return dropped, err
	}
	dropped.next = kv.After(page.Items[len(page.Items)-1].Key)
	w := c.changes(tx)
	for _, item := range page.Items {
		e, err := layout.ParseAssigned(item, prefix)
		if err != nil {
			continue // an audit reports it
		}
		event := Event{Kind: EventUnassign, Token: layout.Token{Worker: worker}, Now: c.clock.Now()}
		moved, err := c.moveAssigned(ctx, tx, w, event, []layout.ID{e.ID}, nil)
		switch {
		case layout.IsUnreadable(err):
			dropped.kept = true
			continue
		case err != nil:
			return dropped, err
		case moved.outcomes[0] == Applied:
			dropped.moved++
		}
	}
	w.flush()
	dropped.then = w.aftermath()
	return dropped, nil
}

// ownEntries returns futures that wait for the worker alone, fit and are not
// gone, and stops at a page once it has enough of them. pending is their first page,
// from askOwn. A nil gone is for none.
func (r *Registration) ownEntries(ctx context.Context, tx kv.Reader, pending kv.Pending[kv.Page], req *ClaimRequest,
	enough int, gone func(layout.ID) bool,
) ([]layout.ReadyEntry, error) {
	prefix := r.cluster.keys.AssignedTo(r.info.ID)
	free := req.Free
	free.Slots = max(free.Slots, 1)
	w := want{free: free, runs: req.Runs, skip: req.Skip, labels: r.labels, noObjects: req.noObjects(), gone: gone}
	var own []layout.ReadyEntry
	for n := 0; ; n++ {
		page, err := pending.Wait(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			e, err := layout.ParseAssigned(item, prefix)
			if err != nil {
				continue // an audit reports it
			}
			if class, function := w.fits(&e); class && function && r.scan.available(&e, &w) {
				own = append(own, e)
			}
		}
		if !page.More || len(own) >= enough || n == scanPages {
			return own, nil
		}
		rest := kv.Range{Begin: kv.After(page.Items[len(page.Items)-1].Key), End: kv.AfterPrefix(prefix)}
		pending = tx.GetRange(rest, kv.RangeOptions{Limit: MaxClaim + 1})
	}
}

// askOwn requests the futures that wait for the worker alone.
func (r *Registration) askOwn(tx kv.Reader, limit int) kv.Pending[kv.Page] {
	return tx.GetRange(kv.Prefix(r.cluster.keys.AssignedTo(r.info.ID)), kv.RangeOptions{Limit: limit})
}

// HeldFuture is a future that waits to be assigned.
type HeldFuture struct {
	ID       layout.ID
	Priority uint8
	// Failed is how many attempts have failed.
	Failed int
	// Due is the time until which it should wait, in milliseconds of Unix time,
	// 0 if it need not wait.
	Due int64
}

// Held returns up to limit futures of an owner that wait to be assigned, and
// the cursor of the next page, empty at the end. Within a shard those with the
// fewest failed attempts come first, then those that are due earliest, then
// those of the highest priority. Respecting the due time of a held future is up
// to the caller. It returns ErrBadCursor for an invalid cursor.
func (c *Cluster) Held(ctx context.Context, owner string, cursor []byte, limit int) ([]HeldFuture, []byte, error) {
	shard := 0
	if len(cursor) > 0 {
		if shard = int(cursor[0]); shard >= c.config.Shards {
			return nil, nil, fmt.Errorf("%w: %x is not a cursor of held futures", layout.ErrBadCursor, cursor)
		}
	}
	var held []HeldFuture
	for ; shard < c.config.Shards; shard++ {
		prefix := c.keys.HeldOf(shard, owner)
		r := kv.Prefix(prefix)
		if len(cursor) > 1 {
			r.Begin = append(bytes.Clone(prefix), cursor[1:]...)
		}
		cursor = nil
		var page kv.Page
		err := c.View(ctx, func(tx kv.Attempt) (err error) {
			page, err = tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: limit - len(held)}).Wait(ctx)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		for _, item := range page.Items {
			rest := tuple.NewReader(item.Key[len(prefix):])
			failed, due, inverse, id := rest.Int(), rest.Int(), rest.Int(), layout.ID(rest.UUID())
			if err := rest.Done(); err != nil {
				return nil, nil, fmt.Errorf("%s: %w: %w", tuple.String(item.Key), layout.ErrBadRecord, err)
			}
			held = append(held, HeldFuture{ID: id, Priority: uint8(255 - inverse), Failed: int(failed), Due: due})
		}
		if page.More {
			last := page.Items[len(page.Items)-1].Key
			return held, append([]byte{byte(shard)}, kv.After(last)[len(prefix):]...), nil
		}
		if len(held) >= limit && shard+1 < c.config.Shards {
			return held, []byte{byte(shard + 1)}, nil
		}
	}
	return held, nil, nil
}

// WatchOwner returns a watch that fires when a held future of the owner ends,
// is assigned, or starts to wait for an assignment, and when the batch with
// that id changes. To see earlier changes the caller reads after this call. The
// caller cancels the watch.
func (c *Cluster) WatchOwner(ctx context.Context, owner string) (kv.Watch, error) {
	var watch kv.Watch
	_, err := c.transact(ctx, kv.Options{Tag: "futura-read"}, func(tx kv.Attempt) error {
		watch = tx.Watch(c.keys.OwnerBell(owner))
		return nil
	})
	if err != nil && watch != nil {
		watch.Cancel()
		watch = nil
	}
	return watch, err
}

// OwnerCounts returns how many futures of an owner are in each state, from its
// counters. Shards are read at slightly different versions.
func (c *Cluster) OwnerCounts(ctx context.Context, queue, owner string) (map[layout.State]int64, error) {
	counts := map[layout.State]int64{}
	err := c.View(ctx, func(tx kv.Attempt) error {
		clear(counts)
		pending := make([]kv.Pending[kv.Page], c.config.Shards)
		for shard := range pending {
			r := kv.Prefix(c.keys.CountOwner(shard, queue, owner))
			pending[shard] = tx.Snapshot().GetRange(r, kv.RangeOptions{})
		}
		for shard, p := range pending {
			page, err := p.Wait(ctx)
			if err != nil {
				return err
			}
			for _, item := range page.Items {
				key, n, err := layout.ParseCount(c.keys.CountsOf(shard), item)
				if err != nil {
					return err
				}
				counts[key.State] += n
			}
		}
		return nil
	})
	return counts, err
}

// OwnerOpen returns how many held futures of an owner are with the workers that
// they were assigned to, waiting or running, by the reason of their assignment.
func (c *Cluster) OwnerOpen(ctx context.Context, owner string) (map[string]int64, error) {
	open := map[string]int64{}
	prefix := c.keys.OwnerOpenOf(owner)
	err := c.EachKey(ctx, kv.Prefix(prefix), func(item kv.KeyValue) error {
		reason, n, err := layout.ParseOpen(prefix, item)
		if n != 0 {
			open[reason] = n
		}
		return err
	})
	return open, err
}

// HeldRetries counts the held futures of an owner that wait to be assigned
// after an attempt that failed, and returns when the next of them becomes due:
// the zero time if all are due.
func (c *Cluster) HeldRetries(ctx context.Context, owner string, now time.Time) (n int, next time.Time, err error) {
	first := int64(0)
	for shard := range c.config.Shards {
		prefix := c.keys.HeldOf(shard, owner)
		r := kv.Prefix(prefix)
		r.Begin = tuple.AppendInt(c.keys.HeldOf(shard, owner), 1)
		err := c.EachKey(ctx, r, func(item kv.KeyValue) error {
			rest := tuple.NewReader(item.Key[len(prefix):])
			rest.Int()
			if due := rest.Int(); due > layout.Millis(now) && (first == 0 || due < first) {
				first = due
			}
			n++
			return nil
		})
		if err != nil {
			return 0, next, err
		}
	}
	if first != 0 {
		next = time.UnixMilli(first).UTC()
	}
	return n, next, nil
}

// DropOwner removes the counters and the bell of an owner without futures. It
// returns ErrTransition if it still has some. An unknown commit is retried and
// harmless.
func (c *Cluster) DropOwner(ctx context.Context, queue, owner string) error {
	_, err := c.transact(ctx, kv.Options{Tag: "futura-discard"}, func(tx kv.Attempt) error {
		for shard := range c.config.Shards {
			r := kv.Prefix(c.keys.CountOwner(shard, queue, owner))
			page, err := tx.GetRange(r, kv.RangeOptions{}).Wait(ctx)
			if err != nil {
				return err
			}
			for _, item := range page.Items {
				key, n, err := layout.ParseCount(c.keys.CountsOf(shard), item)
				if err != nil {
					return err
				}
				if n != 0 {
					return fmt.Errorf("owner %q has %d futures that are %v: %w", owner, n, key.State, ErrTransition)
				}
			}
			tx.ClearRange(r)
		}
		tx.ClearRange(kv.Prefix(c.keys.Owner(owner)))
		return nil
	})
	return err
}

// assignees are the workers that the futures of one submit are assigned to.
type assignees struct {
	cluster *Cluster
	changes *changes
	infos   map[layout.WorkerID]*layout.WorkerInfo
}

// call checks that a submission can be assigned, and calls its worker once.
func (a *assignees) call(ctx context.Context, s *Submission) error {
	info := a.infos[s.Assigned]
	if info == nil {
		var err error
		if info, err = a.cluster.requireAlive(ctx, a.changes.tx, s.Assigned); err != nil {
			return err
		}
		a.changes.callWorker(s.Assigned)
		if a.infos == nil {
			a.infos = map[layout.WorkerID]*layout.WorkerInfo{}
		}
		a.infos[s.Assigned] = info
	}
	if err := info.CanRun(&s.Spec); err != nil {
		return fmt.Errorf("future %s: %w", s.ID, err)
	}
	return nil
}
