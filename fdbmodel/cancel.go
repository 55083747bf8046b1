package fdbmodel

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// Cancel ends a future that has not been claimed as Failed with kind cancelled,
// and asks the holder of a claimed one to stop. It returns the outcome and the
// state after it: Applied, Requested, or Already for a future that is over. A
// result that arrives after the request still counts; anything else that ends
// the claim ends the future as cancelled. It returns ErrNotFound. An unknown
// commit is retried and harmless.
func (c *Cluster) Cancel(ctx context.Context, id ID, reason string) (Outcome, State, error) {
	request := &CancelRequest{Reason: cutText(reason, MaxMessage), At: millis(c.clock.Now())}
	outcome, row, err := c.change(ctx, id, Event{Kind: EventCancel, Cancel: request, Now: c.clock.Now()})
	if err == nil && outcome == Requested && row.Claim != nil {
		c.hub.cancel(row.Claim.Worker, id)
	}
	return outcome, row.State(), err
}

// Retry gives a failed future a new life with all its attempts, and a delayed
// one its next attempt at once. It returns ErrTransition for others, and
// ErrNotFound. An unknown commit is retried; if the future is ready, claimed or
// realized then, the retry has landed.
func (c *Cluster) Retry(ctx context.Context, id ID) error {
	outcome, row, err := c.change(ctx, id, Event{Kind: EventRetry, Now: c.clock.Now()})
	if err == nil && outcome == Refused {
		err = fmt.Errorf("retry of future %s, which is %s: %w", id, row.State(), ErrTransition)
	}
	return err
}

// Discard removes a future that is over, with its result. It returns
// ErrTransition for one that is not (cancel it first), and ErrNotFound. An
// unknown commit is retried; if the future is gone then, the discard has landed.
func (c *Cluster) Discard(ctx context.Context, id ID) error {
	_, err := c.transact(ctx, kv.Options{Tag: "futura-discard"}, func(tx kv.Attempt) error {
		row, err := c.requireRow(ctx, tx, id)
		if tx.MaybeCommitted && errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if !row.State().Terminal() {
			return fmt.Errorf("discard of future %s, which is %s: %w; cancel it first", id, row.State(), ErrTransition)
		}
		w := c.changes(tx)
		w.remove(&row)
		return w.flush()
	})
	return err
}

// remove clears all of a terminal future. Its entry in the done list stays, and
// leads nowhere.
func (w *changes) remove(row *Row) {
	w.tx.ClearRange(w.keys.rowRange(row.ID))
	w.tx.ClearRange(kv.Prefix(w.keys.chunksOfFuture(row.ID)))
	w.count(row.ID, row.Spec.Queue, row.Spec.Group, row.State(), -1)
}

func (c *Cluster) requireRow(ctx context.Context, tx kv.Reader, id ID) (Row, error) {
	row, found, err := c.keys.askRecord(tx, id).wait(ctx)
	if err == nil && (!found || row.Spec == nil) {
		err = fmt.Errorf("future %s: %w", id, ErrNotFound)
	}
	return row, err
}

// change applies an event that comes from outside of the workers.
func (c *Cluster) change(ctx context.Context, id ID, e Event) (outcome Outcome, after Row, err error) {
	result, err := c.transact(ctx, kv.Options{Tag: "futura-" + e.Kind.String()}, func(tx kv.Attempt) error {
		row, err := c.requireRow(ctx, tx, id)
		if err != nil {
			return err
		}
		after, outcome = Next(row, e)
		// A future that could be retried was failed or delayed.
		if s := row.State(); tx.MaybeCommitted && e.Kind == EventRetry && s != Failed && s != Delayed {
			outcome = Already
		}
		if outcome == Refused || outcome == Already {
			return nil
		}
		if outcome == Requested && after.Claim != nil {
			tx.Set(c.keys.cancelled(after.Claim.Worker, id), []byte{recordVersion})
		}
		w := c.changes(tx)
		if err := w.apply(&row, &after); err != nil {
			return err
		}
		return w.flush()
	})
	if err == nil && outcome == Applied && after.inPool() {
		c.wakeQueues(ctx, result.Version, map[string]int{after.Spec.Queue: 1})
	}
	return outcome, after, err
}
