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
	return c.eachPart(ids, func(ids []layout.ID) ([]Outcome, error) {
		var outcomes []Outcome
		_, err := c.Transact(ctx, kv.Options{Tag: "futura-assign"}, func(tx kv.Attempt) error {
			assigned, err := c.AssignTx(ctx, tx, Assignment{From: from, To: to, Reason: reason}, ids)
			outcomes = assigned.Outcomes
			return err
		})
		if err == nil && slices.Contains(outcomes, Applied) {
			c.notifier.WakeWorker(to)
		}
		return outcomes, err
	})
}

// Assignment gives futures to a worker.
type Assignment struct {
	To layout.WorkerID
	// From is the worker that they wait for alone. Defaults to none: they wait for a
	// worker of their own, or are in the pool.
	From layout.WorkerID
	// Reason is recorded with them, at most 64 bytes.
	Reason string
	// May says whether futures that wait for From are moved: others are refused. Defaults to
	// all, and an error if the worker can't run one.
	May func(*layout.Row, *layout.WorkerInfo) bool
}

// Assigned is the answer to an Assignment, for each of its futures.
type Assigned struct {
	Outcomes []Outcome
	// There says whether it is with the worker for that reason then.
	There []bool
}

// AssignTx makes an assignment in the caller's transaction, of at most MaxAssign futures. It
// returns the outcomes and errors of Assign, or of Reassign if From is set. After the commit
// the caller calls WakeWorker of the Notifier.
func (c *Cluster) AssignTx(ctx context.Context, tx kv.Tx, a Assignment, ids []layout.ID) (Assigned, error) {
	if a.From == "" {
		return c.assignIn(ctx, tx, a, ids)
	}
	outcomes, err := c.reassignIn(ctx, tx, a, ids)
	there := make([]bool, len(outcomes))
	for i, o := range outcomes {
		there[i] = o != Refused
	}
	return Assigned{outcomes, there}, err
}

func (c *Cluster) reassignIn(ctx context.Context, tx kv.Tx, r Assignment, ids []layout.ID) ([]Outcome, error) {
	info, err := c.requireAlive(ctx, tx, r.To)
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
		assign := Event{Kind: EventAssign, Token: layout.Token{Worker: r.To}, Reason: r.Reason, Now: now}
		if row.Attempts.Assigned != r.From {
			if _, outcome := Next(row, assign); outcome == Already {
				outcomes[i] = Already
			}
			continue
		}
		freed, outcome := Next(row, Event{Kind: EventUnassign, Token: layout.Token{Worker: r.From}, Now: now})
		if outcome != Applied || r.May != nil && !r.May(&row, info) {
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
		w.Apply(&row, &after)
	}
	if slices.Contains(outcomes, Applied) {
		w.callWorker(r.To)
	}
	if err := w.Flush(ctx); err != nil {
		return nil, err
	}
	return outcomes, nil
}
