package fdbmodel

import (
	"context"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/state"
)

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

// Assign makes an assignment in the transaction, of at most MaxAssign futures. It returns the
// outcomes and errors of Assign of a Cluster.
func (w *WriteSet) Assign(ctx context.Context, a Assignment, ids []layout.ID) (Assigned, error) {
	if err := checkReason(a.Reason); err != nil {
		return Assigned{}, err
	}
	info, err := w.cluster.requireAlive(ctx, a.To, w.Tx.Get(w.Keys.Worker(a.To, layout.WorkerAlive)))
	if err != nil {
		return Assigned{}, err
	}
	event := state.Event{Kind: state.EventAssign, Token: layout.Token{Worker: a.To}, Reason: a.Reason,
		Now: w.cluster.clock.Now()}
	if a.From == "" {
		return w.moveAssigned(ctx, event, ids, info.CanRun)
	}
	outcomes, err := w.reassign(ctx, a, event, info, ids)
	there := make([]bool, len(outcomes))
	for i, o := range outcomes {
		there[i] = o != Refused
	}
	return Assigned{outcomes, there}, err
}

// reassign moves futures that wait for one worker to another one, which assign gives them.
func (w *WriteSet) reassign(ctx context.Context, a Assignment, assign state.Event, info *layout.WorkerInfo,
	ids []layout.ID,
) ([]Outcome, error) {
	outcomes := make([]Outcome, len(ids))
	pending := read.Records(w.Tx, w.Keys, ids)
	for i, id := range ids {
		row, found, err := pending[i].Wait(ctx)
		if err != nil {
			return nil, err
		}
		if outcomes[i] = Refused; !found || row.Spec == nil || slices.Contains(ids[:i], id) {
			continue
		}
		if row.Attempts.Assigned != a.From {
			if _, outcome := state.Next(row, assign); outcome == Already {
				outcomes[i] = Already
			}
			continue
		}
		unassign := state.Event{Kind: state.EventUnassign, Token: layout.Token{Worker: a.From}, Now: assign.Now}
		freed, outcome := state.Next(row, unassign)
		if outcome != Applied || a.May != nil && !a.May(&row, info) {
			continue
		}
		after, outcome := state.Next(freed, assign)
		if outcome != Applied {
			continue
		}
		if err := info.CanRun(row.Needs()); err != nil {
			return nil, fmt.Errorf("future %s: %w", id, err)
		}
		outcomes[i] = Applied
		w.Apply(&row, &after)
	}
	return outcomes, nil
}
