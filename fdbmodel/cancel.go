package fdbmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel/internal/edge"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/state"
)

// Cancel ends a future that has not been claimed as Failed with kind cancelled,
// and asks the holder of a claimed one to stop. It returns the outcome and the
// state after it: Applied, Requested, or Already for a finished future. A
// result that arrives after the request still counts; anything else that ends
// the claim ends the future as cancelled. It returns ErrNotFound for an unknown
// future. An unknown commit is retried and harmless.
func (c *Cluster) Cancel(ctx context.Context, id layout.ID, reason string) (Outcome, layout.State, error) {
	request := &layout.CancelRequest{Reason: layout.Shorten(reason, MaxMessage), At: layout.Millis(c.clock.Now())}
	outcome, row, err := c.change(ctx, id, state.Event{Kind: state.EventCancel, Cancel: request, Now: c.clock.Now()})
	return outcome, row.State(), err
}

// Retry makes a failed future ready with all its attempts, and starts the next
// attempt of a delayed one at once. It returns ErrTransition in other states,
// and for a held future: only the process that drives its owner may retry it,
// by RetryMany, because it must be assigned again. It returns a NotUniqueError for
// a unique future whose name another one has by now, and ErrNotFound for an
// unknown future. An unknown commit is retried; if the future is then ready,
// claimed or realized, the retry has committed.
func (c *Cluster) Retry(ctx context.Context, id layout.ID) error {
	outcome, row, err := c.change(ctx, id, state.Event{Kind: state.EventRetry, Now: c.clock.Now()})
	switch {
	case err != nil || outcome != Refused:
	case row.Spec.IsPut():
		err = fmt.Errorf("future %s is %s, and it was put, not computed, so that nothing can run again: put it again; "+
			"retry is %w", id, row.State(), ErrTransition)
	default:
		err = fmt.Errorf("future %s is %s: retry is %w", id, row.State(), ErrTransition)
	}
	return err
}

// MaxChange is the maximum number of futures in one transaction of CancelMany,
// RetryMany and DiscardMany.
const MaxChange = 100

// CancelMany is Cancel for many futures, with MaxChange of them in each
// transaction. It returns one outcome for each: Applied, Requested or Already,
// and Refused for one that does not exist. On an error the outcomes of the
// transactions before it are returned.
func (c *Cluster) CancelMany(ctx context.Context, ids []layout.ID, reason string) ([]Outcome, error) {
	request := &layout.CancelRequest{Reason: layout.Shorten(reason, MaxMessage), At: layout.Millis(c.clock.Now())}
	return c.changeMany(ctx, ids, state.Event{Kind: state.EventCancel, Cancel: request, Now: c.clock.Now()})
}

// RetryMany is Retry for many futures, as CancelMany is Cancel: Applied, or
// Refused for one that has not failed and is not delayed, and for a unique one whose
// name another future has. After an unknown commit, futures that it may have made ready are Applied.
func (c *Cluster) RetryMany(ctx context.Context, ids []layout.ID) ([]Outcome, error) {
	return c.changeMany(ctx, ids, state.Event{Kind: state.EventRetry, Now: c.clock.Now()})
}

// DiscardMany is Discard for many futures, held ones too. It removes the
// finished ones and returns how many. An unknown commit is retried; futures
// that it had removed by then are not counted.
func (c *Cluster) DiscardMany(ctx context.Context, ids []layout.ID) (removed int, err error) {
	for part := range slices.Chunk(ids, MaxChange) {
		n := 0
		_, err := c.Change(ctx, kv.Options{Tag: "futura-discard"}, func(tx kv.Attempt, w *WriteSet) error {
			n = 0
			for i, p := range read.Records(tx, c.keys, part) {
				row, found, err := p.Wait(ctx)
				if err != nil {
					return err
				}
				if !found || row.Spec == nil || !row.State().Terminal() || slices.Contains(part[:i], part[i]) {
					continue
				}
				released, err := edge.IsReleased(ctx, tx, c.keys, &row)
				if err != nil {
					return err
				}
				if released {
					w.remove(&row)
					n++
				}
			}
			return nil
		})
		if err != nil {
			return removed, err
		}
		removed += n
	}
	return removed, nil
}

func (c *Cluster) changeMany(ctx context.Context, ids []layout.ID, e state.Event) ([]Outcome, error) {
	return c.eachPart(ids, func(part []layout.ID) ([]Outcome, error) {
		var outcomes, before []Outcome
		_, err := c.Change(ctx, kv.Options{Tag: "futura-" + e.Kind.String()}, func(tx kv.Attempt, w *WriteSet) (err error) {
			outcomes, err = w.changeMany(ctx, part, e)
			for i := range before {
				if tx.MaybeCommitted && err == nil && outcomes[i] == Refused {
					outcomes[i] = before[i]
				}
			}
			before = outcomes
			return err
		})
		return outcomes, err
	})
}

// Retry is Retry of a Cluster in the transaction, for a future that was read in it: Applied, or Refused.
func (w *WriteSet) Retry(ctx context.Context, row *layout.Row) (Outcome, error) {
	_, outcome, err := w.ask(ctx, row, state.Event{Kind: state.EventRetry, Now: w.cluster.clock.Now()})
	return outcome, err
}

// RetryMany is RetryMany of a Cluster in the transaction, for at most MaxAssign futures.
func (w *WriteSet) RetryMany(ctx context.Context, ids []layout.ID) ([]Outcome, error) {
	return w.changeMany(ctx, ids, state.Event{Kind: state.EventRetry, Now: w.cluster.clock.Now()})
}

// CancelMany is CancelMany of a Cluster in the transaction, for at most MaxAssign futures.
func (w *WriteSet) CancelMany(ctx context.Context, ids []layout.ID, reason string) ([]Outcome, error) {
	now := w.cluster.clock.Now()
	request := &layout.CancelRequest{Reason: layout.Shorten(reason, MaxMessage), At: layout.Millis(now)}
	return w.changeMany(ctx, ids, state.Event{Kind: state.EventCancel, Cancel: request, Now: now})
}

// changeMany applies an event to futures.
func (w *WriteSet) changeMany(ctx context.Context, ids []layout.ID, e state.Event) ([]Outcome, error) {
	pending, outcomes := read.Records(w.Tx, w.Keys, ids), make([]Outcome, len(ids))
	for i, id := range ids {
		row, found, err := pending[i].Wait(ctx)
		if err != nil {
			return nil, err
		}
		if outcomes[i] = Refused; !found || row.Spec == nil || slices.Contains(ids[:i], id) {
			continue
		}
		_, outcomes[i], err = w.ask(ctx, &row, e)
		if errors.Is(err, ErrNotUnique) {
			outcomes[i], err = Refused, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// ask applies an event that does not come from a worker, if it is possible. The holder of a claim is told
// of a cancellation, and a unique future that starts again needs its name.
func (w *WriteSet) ask(ctx context.Context, before *layout.Row, e state.Event,
) (after layout.Row, outcome Outcome, err error) {
	after, outcome = state.Next(*before, e)
	if outcome == Refused || outcome == Already {
		return after, outcome, nil
	}
	if outcome == Requested && after.Claim != nil {
		w.Tx.Set(w.Keys.Cancelled(after.Claim.Worker, after.ID), layout.Mark())
		w.asked = append(w.asked, after)
	}
	if err := w.requireName(ctx, before, &after); err != nil {
		return after, outcome, err
	}
	w.Apply(before, &after)
	return after, outcome, nil
}

// Discard removes a finished future with its result. It returns ErrTransition
// for an unfinished future (cancel it first), and for a held one: the process
// that drives its owner relies on it, and removes it by DiscardMany. It returns
// ErrNotFound for an unknown future. An unknown commit is retried; if the
// future no longer exists then, the discard has committed.
func (c *Cluster) Discard(ctx context.Context, id layout.ID) error {
	_, err := c.Change(ctx, kv.Options{Tag: "futura-discard"}, func(tx kv.Attempt, w *WriteSet) error {
		row, err := read.Existing(ctx, tx, c.keys, id)
		if tx.MaybeCommitted && errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if row.Spec.IsKept() {
			return driven("discard", &row)
		}
		if !row.State().Terminal() {
			return fmt.Errorf("future %s is %s: discard is %w; cancel it first", id, row.State(), ErrTransition)
		}
		if err := edge.RequireReleased(ctx, tx, c.keys, &row); err != nil {
			return err
		}
		w.remove(&row)
		return nil
	})
	return err
}

// driven refuses a change that only the process that drives a future's owner
// may make.
func driven(what string, row *layout.Row) error {
	return fmt.Errorf("future %s belongs to batch %s: %s is %w; change the batch instead",
		row.ID, row.Spec.Owner, what, ErrTransition)
}

// change applies an event that does not come from a worker.
func (c *Cluster) change(ctx context.Context, id layout.ID, e state.Event,
) (outcome Outcome, after layout.Row, err error) {
	_, err = c.Change(ctx, kv.Options{Tag: "futura-" + e.Kind.String()}, func(tx kv.Attempt, w *WriteSet) error {
		row, err := read.Existing(ctx, tx, c.keys, id)
		if err != nil {
			return err
		}
		if e.Kind == state.EventRetry && row.Spec.Held() {
			return driven("retry", &row)
		}
		after, outcome, err = w.ask(ctx, &row, e)
		// Only an event that is possible is committed: one that is refused after
		// that has committed.
		if tx.MaybeCommitted && outcome == Refused {
			outcome = Already
		}
		return err
	})
	return outcome, after, err
}
