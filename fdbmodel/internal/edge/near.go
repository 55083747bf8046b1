package edge

import (
	"context"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/internal/nearby"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/state"
)

// lostNear is an object that no worker has, and a future that must be near it.
type lostNear struct {
	layout.Row
	user layout.ID
}

// ready unblocks a future. If it takes objects, unblockNear does so.
func (r *resolution) ready(row *layout.Row) {
	if row.Blocked.Objects {
		r.near = append(r.near, row)
		return
	}
	r.apply(row, state.Event{Kind: state.EventUnblock})
}

// unblockNear unblocks the futures that take objects.
func (r *resolution) unblockNear(ctx context.Context) error {
	tx := r.tx.Snapshot()
	search := nearby.NewSearch(tx, r.Keys)
	all := make([]nearby.Future, len(r.near))
	for i, row := range r.near {
		inputs := []layout.ID{row.Spec.Near}
		if row.Spec.Near.IsZero() {
			var err error
			if inputs, err = Some(ctx, tx, r.Keys, row, 0, nearby.MaxWeighed); err != nil {
				return err
			}
		}
		all[i] = search.Ask(row, inputs...)
	}
	for i := range all {
		f := &all[i]
		if f.Row.Spec.MustBeNear {
			if err := r.bind(ctx, f); err != nil {
				return err
			}
			continue
		}
		event, err := state.Event{Kind: state.EventUnblock}, error(nil)
		if event.Near, event.NearWait, err = f.Prefer(ctx); err != nil {
			return err
		}
		r.apply(f.Row, event)
	}
	return nil
}

// bind unblocks a future that must be near an object: it is assigned to a worker that
// has it. If none is left, the loss is reported after the commit, and the edges of the
// future are resolved again. The transaction conflicts with the death of the worker.
func (r *resolution) bind(ctx context.Context, f *nearby.Future) error {
	near, err := f.Near(ctx)
	if err != nil && !layout.IsUnreadable(err) {
		return err
	}
	row, event := *f.Row, state.Event{Kind: state.EventUnblock}
	switch due := row.Attempts.Due > layout.Millis(r.Model.Now()); {
	case due:
	case err != nil:
		r.linkLater(&row, err)
		return nil
	case near.Spec == nil || near.State() != layout.Realized:
		r.linkAgain(&row)
		return nil
	case near.Object() != "":
		alive, able, err := f.Holders(ctx, near.Object())
		if layout.IsUnreadable(err) {
			r.linkLater(&row, err)
			return nil
		}
		if err != nil {
			return err
		}
		if len(alive) == 0 {
			r.lost = append(r.lost, lostNear{near, row.ID})
			r.linkAgain(&row)
			return nil
		}
		if event.Unplaceable = len(able) == 0; event.Unplaceable {
			break
		}
		event.Near = able[int(row.ID[len(row.ID)-2])%len(able)] // they share the work
		r.tx.AddReadConflictKey(r.Keys.Worker(event.Near, layout.WorkerAlive))
	}
	r.apply(&row, event)
	return nil
}

// linkAgain has the edges of a blocked future resolved from the first on.
func (r *resolution) linkAgain(row *layout.Row) {
	row.Blocked = &layout.BlockedRecord{Objects: true}
	r.changes.Place(row)
	r.edges.Mark(row.ID, &layout.ResolveRecord{})
}

// linkLater has the edges of a blocked future resolved again by a janitor, not at once:
// something that it needs can't be read.
func (r *resolution) linkLater(row *layout.Row, err error) {
	row.Blocked = &layout.BlockedRecord{Objects: true}
	r.changes.Place(row)
	r.tx.Set(r.Keys.Resolve(row.ID), layout.Encode(&layout.ResolveRecord{}))
	r.unreadable = append(r.unreadable, fmt.Errorf("future %s waits for what can't be read: future %s, which it must be "+
		"near: %w", row.ID, row.Spec.Near, err))
}

// reportLost reports, after the commit, the objects that futures must be near and no
// worker has. A future whose object could not be reported is left to a janitor: it returns
// which of the marks that are left are to be resolved at once.
func (r *resolution) reportLost(ctx context.Context, left []index.Mark) []index.Mark {
	for i := range r.lost {
		lost := &r.lost[i]
		reported, err := r.Model.Lose(ctx, lost.ID, lost.Result.Token)
		if reported {
			continue
		}
		left = slices.DeleteFunc(left, func(m index.Mark) bool { return m.ID == lost.user })
		if err != nil {
			r.unreadable = append(r.unreadable, fmt.Errorf("future %s must be near future %s, whose loss can't be reported: %w",
				lost.user, lost.ID, err))
		}
	}
	return left
}
