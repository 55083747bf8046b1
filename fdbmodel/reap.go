package fdbmodel

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/internal/member"
	"github.com/futura-run/futura/fdbmodel/internal/roles"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/state"
	"github.com/futura-run/futura/fdbmodel/tuple"
)

// ReapClaims takes back everything that a dead worker holds, or that waits for
// it alone, and removes the worker, also as janitor. What it held waits for a moment, longer with
// each such death, and then goes to any worker. Of what Begin has recorded, the
// most suspicious futures also count a crash, and may fail. ReapClaims wakes idle
// workers that can run what is back in the pool, and returns how many futures it
// has changed. Several
// processes may run it at once, and it may be interrupted anywhere: the next run
// continues. Futures that a newer version of Futura has written stay the dead
// worker's, and the worker is remembered, until a process of that version reaps
// it. It returns ErrTransition for a worker that was not declared dead. An
// unknown commit is retried: futures that were taken back no longer belong to
// the worker.
func (c *Cluster) ReapClaims(ctx context.Context, worker layout.WorkerID) (int, error) {
	// It may have been the janitor: another one goes on where this is cut off.
	released := roles.ReleaseDead(ctx, c.Transact, c.keys, worker)
	total, kept, err := c.endAllClaims(ctx, worker, state.EventReap)
	if err != nil {
		return total, err
	}
	moved, left, err := c.dropAssigned(ctx, worker, true)
	if total += moved; err != nil || kept || left {
		return total, err
	}
	_, err = c.Transact(ctx, kv.Options{Tag: "futura-reap"}, func(tx kv.Attempt) error {
		if err := c.requireDead(ctx, tx, worker); err != nil {
			return err
		}
		return c.forget(ctx, tx, layout.WorkerInfo{ID: worker})
	})
	return total, errors.Join(err, released)
}

func (c *Cluster) requireDead(ctx context.Context, tx kv.Reader, worker layout.WorkerID) error {
	alive, err := tx.Get(c.keys.Worker(worker, layout.WorkerAlive)).Wait(ctx)
	if err == nil && alive != nil {
		err = fmt.Errorf("worker %s is not dead: %w", worker, ErrTransition)
	}
	return err
}

// endAllClaims applies kind, Reap or Relinquish, to everything that a worker holds. It returns how many
// futures it changed, and whether some were kept because a newer version of Futura has written them.
func (c *Cluster) endAllClaims(ctx context.Context, worker layout.WorkerID, kind state.EventKind,
) (total int, kept bool, err error) {
	from := c.keys.Worker(worker, layout.WorkerClaims)
	for {
		var ended endedBatch
		_, failed := c.Change(ctx, kv.Options{Tag: "futura-reap"}, func(_ kv.Attempt, w *WriteSet) (err error) {
			ended, err = w.endClaims(ctx, worker, kind, from)
			return err
		})
		err = errors.Join(err, failed) // what can't be read keeps no others from going back
		if failed != nil && !layout.IsUnreadable(failed) || ended.next == nil {
			return total, kept, err
		}
		if failed == nil {
			total += ended.changed
		}
		kept = kept || ended.kept
		from = ended.next
	}
}

// endedBatch holds the results of ending a claim batch.
type endedBatch struct {
	changed int
	kept    bool   // some futures stay in it
	next    []byte // where the next one may be, nil after the last one
}

// endClaims applies kind to the futures still held by the first claim batch at
// or after from.
func (w *WriteSet) endClaims(ctx context.Context, worker layout.WorkerID, kind state.EventKind, from []byte,
) (endedBatch, error) {
	c, tx := w.cluster, w.Tx
	var culprits map[layout.ID]int64
	if kind == state.EventReap {
		if err := c.requireDead(ctx, tx, worker); err != nil {
			return endedBatch{}, err
		}
		var err error
		if culprits, err = member.Culprits(ctx, tx, c.keys, worker); err != nil {
			return endedBatch{}, err
		}
	}
	prefix := c.keys.Worker(worker, layout.WorkerClaims)
	page, err := tx.GetRange(kv.Range{Begin: from, End: kv.AfterPrefix(prefix)}, kv.RangeOptions{Limit: 1}).Wait(ctx)
	if err != nil || len(page.Items) == 0 {
		return endedBatch{}, err
	}
	return w.endBatch(ctx, state.Event{Kind: kind, Token: layout.Token{Worker: worker}}, page.Items[0], culprits)
}

// endBatch removes a claim batch, or leaves in it what a newer version of Futura
// has written. It completes the event for each future.
func (w *WriteSet) endBatch(ctx context.Context, event state.Event, item kv.KeyValue, culprits map[layout.ID]int64,
) (endedBatch, error) {
	c, tx := w.cluster, w.Tx
	ended := endedBatch{next: kv.After(item.Key)}
	rest := tuple.NewReader(item.Key[len(c.keys.Worker(event.Token.Worker, layout.WorkerClaims)):])
	sequence := rest.Int()
	ids, err := layout.DecodeClaims(item.Key, item.Value)
	if err != nil {
		return ended, err
	}
	pending := make([]read.Pending, len(ids))
	for i, id := range ids {
		pending[i] = read.Record(tx, c.keys, id)
	}
	w.owners.Losing = true
	var kept []layout.ID
	for i, id := range ids {
		row, found, err := pending[i].Wait(ctx)
		switch {
		case errors.Is(err, layout.ErrNewerRecord):
			kept = append(kept, id)
			continue
		case errors.Is(err, layout.ErrBadRecord):
			continue // an unreadable future must not keep the others from going back
		case err != nil:
			return ended, err
		}
		if !found || row.Spec == nil || row.Claim == nil || row.Claim.Sequence != sequence {
			continue
		}
		if w.Skips(&row) {
			kept = append(kept, id)
			continue
		}
		begun, isCandidate := culprits[id]
		event.Token.Sequence, event.Crash = sequence, isCandidate && begun == sequence
		event.Now, event.Jitter = c.clock.Now(), c.random.Float()
		after, outcome := state.Next(row, event)
		if outcome != Applied {
			continue
		}
		if event.Kind == state.EventRelinquish {
			tx.Clear(c.keys.Suspect(event.Token.Worker, id)) // those of a dead worker are still needed
		}
		w.Apply(&row, &after)
		ended.changed++
		if e := after.Exception; e != nil && e.Final && e.Kind != layout.KindCancelled {
			w.Lost(&after)
		}
	}
	if ended.kept = len(kept) > 0; ended.kept {
		tx.Set(item.Key, layout.EncodeClaims(kept))
	} else {
		tx.Clear(item.Key)
	}
	return ended, nil
}
