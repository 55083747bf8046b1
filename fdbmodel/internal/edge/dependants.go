package edge

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/state"
)

// MaxNotified is how many dependants of a result the transaction notifies that realizes it.
// If there are more, all are notified after its commit.
const MaxNotified = 8

// Dependants notifies futures that inputs of theirs are realized, within the transaction
// that realizes those or in one that resolves dependencies. Futures that wait for no other
// input are unblocked.
//
// Two inputs that end at once don't see the other's end. So a transaction that sees another
// input left relies on the key of that input, and repeats if it is cleared; or it leaves a
// mark, and what is left is checked again after the commit. The transaction that commits
// last leaves its mark behind all ends, and the check sees those. What resolves
// dependencies needs neither where inputs are not listed: it notifies of what has ended
// before, so a transaction that ends another input sees that, or leaves a mark.
type Dependants struct {
	Edges *index.Edges
	// Checks says to leave a mark at a future that still waits, and not to rely on the
	// key of the input that it waits for.
	Checks bool

	// waiting are the futures to notify, with those of their inputs that are realized.
	waiting  map[layout.ID][]layout.ID
	order    []layout.ID
	notified []dependant
}

// dependant is a blocked future that is notified of inputs.
type dependant struct {
	row    layout.Row
	inputs []layout.ID
	// free is set if it waits for no other input, check if that is to be checked again.
	// What it waits for decides if asks is set.
	free, check, asks bool
	waits             wait
}

func (d *Dependants) add(id, input layout.ID) {
	if d.waiting == nil {
		d.waiting = map[layout.ID][]layout.ID{}
	}
	if d.waiting[id] == nil {
		d.order = append(d.order, id)
	}
	d.waiting[id] = append(d.waiting[id], input)
}

// Find finds the dependants of futures that the transaction realizes, and tells the index
// which of these have all of theirs notified. The transaction conflicts with one that links
// another dependant to them.
func (d *Dependants) Find(ctx context.Context, realized []layout.ID) error {
	if len(realized) == 0 {
		return nil
	}
	tx, keys := d.Edges.Tx, d.Edges.Keys
	pages := read.Users(tx.Snapshot(), keys, realized, MaxNotified+1)
	d.Edges.Notified = make(map[layout.ID]bool, len(realized))
	for i, id := range realized {
		page, err := pages[i].Wait(ctx)
		if err != nil {
			return err
		}
		if len(page.Items) > MaxNotified {
			continue
		}
		d.Edges.Notified[id] = true
		tx.AddReadConflictRange(kv.Prefix(keys.DependantsOf(id)))
		for _, item := range page.Items {
			if dependant, ok := layout.OtherEnd(item.Key); ok {
				d.add(dependant, id)
			}
		}
	}
	return nil
}

// Read reads the futures to notify, and decides which of them wait for no other input.
func (d *Dependants) Read(ctx context.Context) error {
	if len(d.order) == 0 {
		return nil
	}
	tx, keys := d.Edges.Tx, d.Edges.Keys
	others := check{tx: tx.Snapshot(), keys: keys}
	d.notified = make([]dependant, 0, len(d.order))
	for _, p := range read.Rows(others.tx, keys, d.order, keys.Spec) {
		row, _, err := p.Wait(ctx)
		if err != nil && !layout.IsUnreadable(err) {
			return err
		}
		n := dependant{row: row, inputs: d.waiting[p.ID]}
		switch {
		case err != nil:
			n.row, n.check = layout.Row{ID: p.ID}, true // a version that can read it checks
		case row.Spec == nil || row.State() != layout.Blocked:
			continue
		case row.Blocked.Linked < row.Spec.CountInputs():
			n.check = true // in case the last one is linked meanwhile
		case row.Spec.CountInputs() == len(n.inputs):
			n.free = true
		default:
			n.asks, n.waits = true, others.ask(&row, n.inputs)
		}
		d.notified = append(d.notified, n)
	}
	if err := others.read(ctx); err != nil {
		return err
	}
	for i := range d.notified {
		n := &d.notified[i]
		if n.asks {
			input, waits, err := others.last(ctx, n.waits)
			if err != nil && !layout.IsUnreadable(err) {
				return err
			}
			d.decide(n, input, waits, err == nil)
		}
		if n.free {
			tx.AddReadConflictRange(keys.RecordRange(n.row.ID))
		}
	}
	return nil
}

// decide decides on a future that may wait for another input, which may be one that
// only a newer version can read.
func (d *Dependants) decide(n *dependant, other layout.ID, waits, readable bool) {
	switch {
	case !waits:
		n.free = true
	case d.Checks || !readable:
		n.check = true
	case n.waits.listed:
		d.Edges.Tx.AddReadConflictKey(d.Edges.Keys.Input(n.row.ID, other))
	}
}

// Notify notifies the futures that Read has found. apply applies an event to one of them.
func (d *Dependants) Notify(apply func(*layout.Row, state.Event)) {
	for i := range d.notified {
		n := &d.notified[i]
		if n.row.Spec == nil || n.row.Spec.ListsInputs() {
			for _, input := range n.inputs {
				d.Edges.Tx.Clear(d.Edges.Keys.Input(n.row.ID, input))
			}
		}
		switch {
		case n.free && n.row.Blocked.Objects:
			d.Edges.MarkCheck(n.row.ID, n.inputs[0]) // for the worker that has them, once they are committed
		case n.free:
			apply(&n.row, state.Event{Kind: state.EventUnblock})
		case n.check:
			d.Edges.MarkCheck(n.row.ID, n.inputs[0])
		}
	}
}
