package fdbmodel

import (
	"context"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel/internal/claim"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/state"
)

// janitorBatch is the maximum number of futures that one transaction of a janitor changes.
const janitorBatch = 64

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

// Assign gives ready futures to a worker, and held ones that are delayed: each leaves the
// pool, or the held futures, and waits for this worker alone, which takes it before those of
// the pool. With From set it moves those that wait for that worker, which need not be
// registered, so that no other worker can take them in between. It returns one outcome for
// each: Applied; Already, if it waits for this worker for that reason; Refused, if it is not
// ready, does not exist, is assigned to another worker than From, or must be near an object,
// which decides where it waits. It returns ErrNotFound if the worker is not registered, and
// ErrUnfit if it can never run one of the futures: it does not serve the queue, does not know
// the function, or is too small. Each MaxAssign futures are one transaction; on an error the
// outcomes of the transactions before it are returned. An unknown commit is retried: futures
// whose assignment committed return Already, or Refused if the worker has claimed them since.
//
// The futures with workers are counted separately for each reason; see package owners.
//
// When the worker fails an attempt, can't run the future, leaves or dies, the
// future is unassigned.
func (c *Cluster) Assign(ctx context.Context, a Assignment, ids []layout.ID) ([]Outcome, error) {
	return c.eachPart(ids, func(ids []layout.ID) (outcomes []Outcome, err error) {
		_, err = c.Change(ctx, kv.Options{Tag: "futura-assign"}, func(_ kv.Attempt, w *WriteSet) error {
			assigned, err := w.Assign(ctx, a, ids)
			outcomes = assigned.Outcomes
			return err
		})
		return outcomes, err
	})
}

// Unassign takes ready futures from a worker that has not claimed them: they go
// back to the pool, or to the held futures. It returns one outcome for each:
// Applied, or Refused if it does not wait for this worker. Each MaxAssign
// futures are one transaction. An unknown commit is retried: futures that were
// unassigned by then return Refused.
func (c *Cluster) Unassign(ctx context.Context, worker layout.WorkerID, ids []layout.ID) ([]Outcome, error) {
	return c.eachPart(ids, func(ids []layout.ID) ([]Outcome, error) {
		var outcomes []Outcome
		_, err := c.Change(ctx, kv.Options{Tag: "futura-assign"}, func(_ kv.Attempt, w *WriteSet) error {
			event := state.Event{Kind: state.EventUnassign, Token: layout.Token{Worker: worker}, Now: c.clock.Now()}
			moved, err := w.moveAssigned(ctx, event, ids, nil)
			outcomes = moved.Outcomes
			return err
		})
		return outcomes, err
	})
}

func (c *Cluster) eachPart(ids []layout.ID, fn func([]layout.ID) ([]Outcome, error)) ([]Outcome, error) {
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

// requireAlive returns what a worker can run, and ErrNotFound unless it is registered. alive is
// its fence, read serializably: a reaper's clear conflicts.
func (c *Cluster) requireAlive(ctx context.Context, worker layout.WorkerID, alive kv.Pending[[]byte],
) (*layout.WorkerInfo, error) {
	key := c.keys.Worker(worker, layout.WorkerAlive)
	value, err := alive.Wait(ctx)
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

// moveAssigned applies Assign or Unassign to futures.
func (w *WriteSet) moveAssigned(ctx context.Context, e state.Event, ids []layout.ID,
	check func(*layout.Spec) error,
) (Assigned, error) {
	moved := Assigned{make([]Outcome, len(ids)), make([]bool, len(ids))}
	pending := read.Records(w.Tx, w.Keys, ids)
	for i, id := range ids {
		row, found, err := pending[i].Wait(ctx)
		if err != nil {
			return moved, err
		}
		if moved.Outcomes[i] = Refused; !found || row.Spec == nil || slices.Contains(ids[:i], id) {
			continue
		}
		after, outcome := state.Next(row, e)
		moved.Outcomes[i] = outcome
		moved.There[i] = after.Open() && after.Attempts.Assigned == e.Token.Worker && after.Attempts.Reason == e.Reason
		if outcome != Applied {
			continue
		}
		if check != nil {
			if err := check(row.Needs()); err != nil {
				return moved, fmt.Errorf("future %s: %w", id, err)
			}
		}
		w.Apply(&row, &after)
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
		_, err := c.Change(ctx, kv.Options{Tag: "futura-reap"}, func(tx kv.Attempt, w *WriteSet) (err error) {
			if dead {
				if err := c.requireDead(ctx, tx, worker); err != nil {
					return err
				}
			}
			page, err = c.dropAssignedIn(ctx, w, worker, from)
			if !dead {
				// The worker is still a member: what must be near its objects would come back.
				w.edges.Marks = nil
			}
			return err
		})
		if err != nil {
			return total, kept, err
		}
		total, kept = total+page.moved, kept || page.kept
		if from = page.next; from == nil {
			return total, kept, nil
		}
	}
}

// droppedPage holds the results of moving a page of assignments.
type droppedPage struct {
	moved int
	kept  bool   // some entries stay: an audit reports them
	next  []byte // where the next page may be, nil after the last one
}

// dropAssignedIn moves a page of the futures that wait for a worker.
func (c *Cluster) dropAssignedIn(ctx context.Context, w *WriteSet, worker layout.WorkerID, from []byte,
) (dropped droppedPage, err error) {
	prefix := c.keys.AssignedTo(worker)
	r := kv.Range{Begin: from, End: kv.AfterPrefix(prefix)}
	page, err := w.Tx.GetRange(r, kv.RangeOptions{Limit: janitorBatch}).Wait(ctx)
	if err != nil || len(page.Items) == 0 {
		return dropped, err
	}
	dropped.next = kv.After(page.Items[len(page.Items)-1].Key)
	w.owners.Losing = true
	for _, item := range page.Items {
		e, err := layout.ParseAssigned(item, prefix)
		if err != nil {
			dropped.kept = true // an audit reports it
			continue
		}
		event := state.Event{Kind: state.EventUnassign, Token: layout.Token{Worker: worker}, Now: c.clock.Now()}
		moved, err := w.moveAssigned(ctx, event, []layout.ID{e.ID}, nil)
		switch {
		case err != nil && !layout.IsUnreadable(err):
			return dropped, err
		case err == nil && moved.Outcomes[0] == Applied:
			dropped.moved++
		default: // it can't be read, or does not wait for the worker
			dropped.kept = true
		}
	}
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
	w := claim.Want{Free: free, Runs: req.Runs, Skip: req.Skip, Labels: r.labels, NoObjects: req.noObjects(), Gone: gone}
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
			if class, function := w.Fits(&e); class && function && !r.cluster.paused.Queue(e.Class.Queue) &&
				r.scan.Available(&e, &w) {
				own = append(own, e)
			}
		}
		if !page.More || len(own) >= enough || n == claim.MaxPages {
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
