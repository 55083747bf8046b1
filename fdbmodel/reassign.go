package fdbmodel

import (
	"context"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
)

// Reassign moves ready futures that wait for one worker alone to another one, each in
// one transaction, so that nobody else can take it in between. It returns one outcome
// for each: Applied; Already, if it waits for the other worker for that reason; and
// Refused, if it waits for neither, does not exist, or must be near an object, which
// decides where it waits. Errors, reason, batches and unknown commits are as for Assign;
// the worker that they are taken from need not be registered.
func (c *Cluster) Reassign(ctx context.Context, from, to layout.WorkerID, reason string, ids []layout.ID,
) ([]Outcome, error) {
	if err := checkReason(reason); err != nil {
		return nil, err
	}
	return c.eachAssign(ctx, ids, func(ids []layout.ID) ([]Outcome, error) {
		var outcomes []Outcome
		_, err := c.Transact(ctx, kv.Options{Tag: "futura-assign"}, func(tx kv.Attempt) (err error) {
			outcomes, err = c.reassignIn(ctx, tx, reassignment{from: from, to: to, reason: reason}, ids)
			return err
		})
		if err == nil && slices.Contains(outcomes, Applied) {
			c.hub.wakeWorker(to)
		}
		return outcomes, err
	})
}

// reassignment is who gets what waits for another worker.
type reassignment struct {
	from, to layout.WorkerID
	reason   string
	// may says whether the other worker gets a future: others are refused. nil is for all; it
	// is an error if the worker can't run one.
	may func(*layout.Row, *layout.WorkerInfo) bool
}

func (c *Cluster) reassignIn(ctx context.Context, tx kv.Attempt, r reassignment, ids []layout.ID) ([]Outcome, error) {
	info, err := c.requireAlive(ctx, tx, r.to)
	if err != nil {
		return nil, err
	}
	w, now, outcomes := c.write(tx), c.clock.Now(), make([]Outcome, len(ids))
	pending := read.Records(tx, c.keys, ids)
	for i, id := range ids {
		row, found, err := pending[i].Wait(ctx)
		if err != nil {
			return nil, err
		}
		if outcomes[i] = Refused; !found || row.Spec == nil || slices.Contains(ids[:i], id) {
			continue
		}
		assign := Event{Kind: EventAssign, Token: layout.Token{Worker: r.to}, Reason: r.reason, Now: now}
		if row.Attempts.Assigned != r.from {
			if _, outcome := Next(row, assign); outcome == Already {
				outcomes[i] = Already
			}
			continue
		}
		freed, outcome := Next(row, Event{Kind: EventUnassign, Token: layout.Token{Worker: r.from}, Now: now})
		if outcome != Applied || r.may != nil && !r.may(&row, info) {
			continue
		}
		after, outcome := Next(freed, assign)
		if outcome != Applied {
			continue
		}
		if err := info.CanRun(row.Needs()); err != nil {
			return nil, fmt.Errorf("future %s: %w", id, err)
		}
		outcomes[i] = Applied
		w.apply(&row, &after)
	}
	if slices.Contains(outcomes, Applied) {
		w.callWorker(r.to)
	}
	if err := w.Flush(ctx); err != nil {
		return nil, err
	}
	return outcomes, nil
}
