package fdbmodel

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// MaxAssign is the most futures of one transaction of Assign or Unassign.
const MaxAssign = 100

// Assign gives ready futures to a worker: each leaves the pool, or the futures
// that are held, and waits for this worker alone, which takes it before the
// pool. It returns one outcome for each: Applied; Already, if it is assigned to
// this worker; Refused, if it is not ready, does not exist, or is assigned to
// another, from whom it must be taken first. It returns ErrNotFound if the
// worker does not live, and ErrBadSpec if it can never run one of the futures:
// it does not serve the queue, does not know the function, or is not that
// large. Each MaxAssign futures are one transaction; on an error the outcomes of
// those before it are returned. An unknown commit is retried: what landed comes
// to Already, or to Refused if the worker has claimed it since.
//
// When the worker fails an attempt, can't run the future, leaves or dies, the
// future is assigned to nobody any more.
func (c *Cluster) Assign(ctx context.Context, worker WorkerID, ids []ID) ([]Outcome, error) {
	return c.eachAssign(ctx, ids, func(ids []ID) ([]Outcome, error) {
		var outcomes []Outcome
		_, err := c.transact(ctx, kv.Options{Tag: "futura-assign"}, func(tx kv.Attempt) (err error) {
			outcomes, err = c.assignIn(ctx, tx, worker, ids)
			return err
		})
		if err == nil && slices.Contains(outcomes, Applied) {
			c.hub.wakeWorker(worker)
		}
		return outcomes, err
	})
}

// Unassign takes ready futures from a worker that has not claimed them: they go
// back to the pool, or to the futures that are held. It returns one outcome for
// each: Applied, or Refused if it does not wait for this worker. Each MaxAssign
// futures are one transaction. An unknown commit is retried: what landed comes
// to Refused.
func (c *Cluster) Unassign(ctx context.Context, worker WorkerID, ids []ID) ([]Outcome, error) {
	return c.eachAssign(ctx, ids, func(ids []ID) ([]Outcome, error) {
		var outcomes []Outcome
		var placed map[string]int
		result, err := c.transact(ctx, kv.Options{Tag: "futura-assign"}, func(tx kv.Attempt) error {
			w := c.changes(tx)
			var err error
			outcomes, placed, err = c.moveAssigned(ctx, tx, w, worker, EventUnassign, ids, nil)
			if err != nil {
				return err
			}
			return w.flush()
		})
		if err == nil {
			c.wakeQueues(ctx, result.Version, placed)
		}
		return outcomes, err
	})
}

func (c *Cluster) eachAssign(_ context.Context, ids []ID, fn func([]ID) ([]Outcome, error)) ([]Outcome, error) {
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

func (c *Cluster) assignIn(ctx context.Context, tx kv.Attempt, worker WorkerID, ids []ID) ([]Outcome, error) {
	info, err := c.requireAlive(ctx, tx, worker)
	if err != nil {
		return nil, err
	}
	w := c.changes(tx)
	outcomes, _, err := c.moveAssigned(ctx, tx, w, worker, EventAssign, ids, info.canRun)
	if err != nil {
		return nil, err
	}
	if slices.Contains(outcomes, Applied) {
		if err := w.callWorker(worker); err != nil {
			return nil, err
		}
	}
	return outcomes, w.flush()
}

// requireAlive reads a worker's fence serializably: a reaper's clear conflicts.
func (c *Cluster) requireAlive(ctx context.Context, tx kv.Reader, worker WorkerID) (*WorkerInfo, error) {
	key := c.keys.worker(worker, workerAlive)
	value, err := tx.Get(key).Wait(ctx)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return nil, fmt.Errorf("worker %s does not live: %w", worker, ErrNotFound)
	}
	info := &WorkerInfo{ID: worker}
	if err := decodeRecord(key, value, info); err != nil {
		return nil, err
	}
	info.ID = worker
	return info, nil
}

// canRun returns ErrBadSpec if the worker can never run a future.
func (w *WorkerInfo) canRun(spec *Spec) error {
	switch {
	case !slices.Contains(w.Queues, spec.Queue):
		return fmt.Errorf("%w: worker %s does not serve its queue %q", ErrBadSpec, w.ID, spec.Queue)
	case !w.Runs(spec.Function):
		return fmt.Errorf("%w: worker %s does not know its function %s", ErrBadSpec, w.ID, spec.Function)
	case !w.Capacity.Fit(spec.Requirements):
		return fmt.Errorf("%w: worker %s is too small for its requirements", ErrBadSpec, w.ID)
	default:
		return nil
	}
}

// callWorker marks a worker as one that something is assigned to, until it is
// forgotten, and wakes it.
func (w *changes) callWorker(worker WorkerID) error {
	wake, err := encodeStamped(struct{}{})
	if err != nil {
		return err
	}
	w.tx.Set(w.keys.worker(worker, workerAssigned), []byte{recordVersion})
	w.tx.SetVersionstampedValue(w.keys.worker(worker, workerWake), wake, stampOffset)
	return nil
}

// moveAssigned applies Assign or Unassign to futures. It returns how many went
// to the pool, by their queues.
func (c *Cluster) moveAssigned(ctx context.Context, tx kv.Tx, w *changes, worker WorkerID, kind EventKind, ids []ID,
	check func(*Spec) error,
) (outcomes []Outcome, placed map[string]int, err error) {
	pending := make([]pendingRow, len(ids))
	for i, id := range ids {
		pending[i] = c.keys.askRecord(tx, id)
	}
	outcomes = make([]Outcome, len(ids))
	for i, id := range ids {
		row, found, err := pending[i].wait(ctx)
		if err != nil {
			return nil, nil, err
		}
		if outcomes[i] = Refused; !found || row.Spec == nil || slices.Contains(ids[:i], id) {
			continue
		}
		after, outcome := Next(row, Event{Kind: kind, Token: Token{Worker: worker}, Now: c.clock.Now()})
		outcomes[i] = outcome
		if outcome != Applied {
			continue
		}
		if check != nil {
			if err := check(row.Spec); err != nil {
				return nil, nil, fmt.Errorf("future %s: %w", id, err)
			}
		}
		if err := w.apply(&row, &after); err != nil {
			return nil, nil, err
		}
		if kind == EventUnassign && !row.Spec.Held {
			placed = addCount(placed, row.Spec.Queue)
		}
	}
	return outcomes, placed, nil
}

// dropAssigned takes everything from a worker that waits for it alone, a batch
// in each transaction. It returns how many futures it moved, and whether some
// were kept because they can't be read. dead is for a worker that must be.
func (c *Cluster) dropAssigned(ctx context.Context, worker WorkerID, dead bool) (total int, kept bool, err error) {
	from := c.keys.assignedTo(worker)
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
		c.wakeQueues(ctx, result.Version, page.placed)
		total, kept = total+page.moved, kept || page.kept
		if from = page.next; from == nil {
			return total, kept, nil
		}
	}
}

// droppedPage is what became of a page of assignments.
type droppedPage struct {
	moved  int
	kept   bool           // some can't be read
	placed map[string]int // those that went to the pool, by their queues
	next   []byte         // where the next page may be, nil behind the last one
}

// dropAssignedIn moves a page of what waits for a worker.
func (c *Cluster) dropAssignedIn(ctx context.Context, tx kv.Tx, worker WorkerID, from []byte) (droppedPage, error) {
	var dropped droppedPage
	prefix := c.keys.assignedTo(worker)
	r := kv.Range{Begin: from, End: kv.AfterPrefix(prefix)}
	page, err := tx.GetRange(r, kv.RangeOptions{Limit: janitorBatch}).Wait(ctx)
	if err != nil || len(page.Items) == 0 {
		return dropped, err
	}
	dropped.next = kv.After(page.Items[len(page.Items)-1].Key)
	w := c.changes(tx)
	for _, item := range page.Items {
		e, err := parseAssigned(item, prefix)
		if err != nil {
			continue // a check names it
		}
		outcomes, at, err := c.moveAssigned(ctx, tx, w, worker, EventUnassign, []ID{e.id}, nil)
		switch {
		case isUnreadable(err):
			dropped.kept = true
			continue
		case err != nil:
			return dropped, err
		case outcomes[0] == Applied:
			dropped.moved++
		}
		for queue := range at {
			dropped.placed = addCount(dropped.placed, queue)
		}
	}
	return dropped, w.flush()
}

// parseAssigned reads a key below a worker's assignments.
func parseAssigned(item kv.KeyValue, prefix []byte) (readyEntry, error) {
	rest := tuple.NewReader(item.Key[len(prefix):])
	queue := rest.Text()
	if err := rest.Err(); err != nil {
		return readyEntry{}, err
	}
	e, _, err := parseReady(item, item.Key[:len(item.Key)-len(rest.Rest())], queue)
	return e, err
}

// ownEntries returns what waits for the worker alone and fits.
func (r *Registration) ownEntries(ctx context.Context, pending kv.Pending[kv.Page], req *ClaimRequest,
) ([]readyEntry, error) {
	page, err := pending.Wait(ctx)
	if err != nil {
		return nil, err
	}
	prefix := r.cluster.keys.assignedTo(r.info.ID)
	free := req.Free
	free.Slots = max(free.Slots, 1)
	w := want{free: free, runs: req.Runs, skip: req.Skip}
	var own []readyEntry
	for _, item := range page.Items {
		e, err := parseAssigned(item, prefix)
		if err != nil {
			continue // a check names it
		}
		if class, function := w.fits(&e); class && function && !r.scan.refused.has(e.id) {
			own = append(own, e)
		}
	}
	return own, nil
}

// askOwn asks for what waits for the worker alone.
func (r *Registration) askOwn(tx kv.Reader, limit int) kv.Pending[kv.Page] {
	return tx.GetRange(kv.Prefix(r.cluster.keys.assignedTo(r.info.ID)), kv.RangeOptions{Limit: limit})
}

// HeldFuture is a future that waits to be assigned.
type HeldFuture struct {
	ID       ID
	Priority uint8
	// Failed is how many attempts have failed.
	Failed int
}

// Held returns up to limit futures of a group that wait to be assigned, and the
// cursor of what follows, empty at the end. Within a shard those with the fewest
// failed attempts come first, and of those the ones of the highest priority. It
// returns ErrBadSpec for a cursor that is none.
func (c *Cluster) Held(ctx context.Context, group string, cursor []byte, limit int) ([]HeldFuture, []byte, error) {
	shard := 0
	if len(cursor) > 0 {
		if shard = int(cursor[0]); shard >= c.config.Shards {
			return nil, nil, fmt.Errorf("%w: %x is not a cursor of held futures", ErrBadSpec, cursor)
		}
	}
	var held []HeldFuture
	for ; shard < c.config.Shards; shard++ {
		prefix := c.keys.heldOf(shard, group)
		r := kv.Prefix(prefix)
		if len(cursor) > 1 {
			r.Begin = append(bytes.Clone(prefix), cursor[1:]...)
		}
		cursor = nil
		var page kv.Page
		err := c.view(ctx, func(tx kv.Attempt) (err error) {
			page, err = tx.Snapshot().GetRange(r, kv.RangeOptions{Limit: limit - len(held)}).Wait(ctx)
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		for _, item := range page.Items {
			rest := tuple.NewReader(item.Key[len(prefix):])
			failed, inverse, id := rest.Int(), rest.Int(), ID(rest.UUID())
			if err := rest.Done(); err != nil {
				return nil, nil, fmt.Errorf("%s: %w: %w", tuple.String(item.Key), ErrBadRecord, err)
			}
			held = append(held, HeldFuture{ID: id, Priority: uint8(255 - inverse), Failed: int(failed)})
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

// WatchGroup returns a watch that fires when a held future of the group ends or
// waits to be assigned. What happened before is for the caller to read after
// this. The caller cancels the watch.
func (c *Cluster) WatchGroup(ctx context.Context, group string) (kv.Watch, error) {
	var watch kv.Watch
	_, err := c.transact(ctx, kv.Options{Tag: "futura-read"}, func(tx kv.Attempt) error {
		watch = tx.Watch(c.keys.groupBell(group))
		return nil
	})
	if err != nil && watch != nil {
		watch.Cancel()
		watch = nil
	}
	return watch, err
}

// GroupCounts returns how many futures of a group are in each state, from its
// counters. Shards are read at slightly different versions.
func (c *Cluster) GroupCounts(ctx context.Context, queue, group string) (map[State]int64, error) {
	counts := map[State]int64{}
	err := c.view(ctx, func(tx kv.Attempt) error {
		clear(counts)
		pending := make([]kv.Pending[kv.Page], c.config.Shards)
		for shard := range pending {
			r := kv.Prefix(c.keys.countGroup(shard, queue, group))
			pending[shard] = tx.Snapshot().GetRange(r, kv.RangeOptions{})
		}
		for shard, p := range pending {
			page, err := p.Wait(ctx)
			if err != nil {
				return err
			}
			for _, item := range page.Items {
				key, n, err := parseCount(c.keys.countsOf(shard), item)
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

// DropGroup forgets a group of which no future is left: its counters and its
// bell. It returns ErrTransition if there are some. An unknown commit is retried
// and harmless.
func (c *Cluster) DropGroup(ctx context.Context, queue, group string) error {
	_, err := c.transact(ctx, kv.Options{Tag: "futura-discard"}, func(tx kv.Attempt) error {
		for shard := range c.config.Shards {
			r := kv.Prefix(c.keys.countGroup(shard, queue, group))
			page, err := tx.GetRange(r, kv.RangeOptions{}).Wait(ctx)
			if err != nil {
				return err
			}
			for _, item := range page.Items {
				key, n, err := parseCount(c.keys.countsOf(shard), item)
				if err != nil {
					return err
				}
				if n != 0 {
					return fmt.Errorf("group %q has %d futures that are %v: %w", group, n, key.State, ErrTransition)
				}
			}
			tx.ClearRange(r)
		}
		tx.Clear(c.keys.groupBell(group))
		return nil
	})
	return err
}

// assignees are the workers that the futures of one submit are assigned to.
type assignees struct {
	cluster *Cluster
	changes *changes
	infos   map[WorkerID]*WorkerInfo
}

// call checks that a submission can be assigned, and calls its worker once.
func (a *assignees) call(ctx context.Context, s *Submission) error {
	info := a.infos[s.Assigned]
	if info == nil {
		var err error
		if info, err = a.cluster.requireAlive(ctx, a.changes.tx, s.Assigned); err != nil {
			return err
		}
		if err := a.changes.callWorker(s.Assigned); err != nil {
			return err
		}
		if a.infos == nil {
			a.infos = map[WorkerID]*WorkerInfo{}
		}
		a.infos[s.Assigned] = info
	}
	if err := info.canRun(&s.Spec); err != nil {
		return fmt.Errorf("future %s: %w", s.ID, err)
	}
	return nil
}
