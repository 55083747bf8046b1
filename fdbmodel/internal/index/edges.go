package index

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Edges connect futures with those that they take results of.
type Edges struct {
	*Set
	// Notified are futures that the transaction ends and all of whose dependants it
	// notifies itself.
	Notified map[layout.ID]bool
	// Marks are what is to be resolved after the commit.
	Marks []Mark
}

// Mark is a future whose edges are to be resolved: those to an input, if that is set, else
// all.
type Mark struct{ ID, Input layout.ID }

// Update implements Index. The edges of a new future are written apart from it.
func (e *Edges) Update(before, after *layout.Row) {
	switch {
	case before == nil:
	case after == nil:
		e.remove(before)
	case before.State() == after.State():
	case after.State().Terminal():
		e.leave(before, after)
	case after.State() == layout.Blocked && !after.Spec.IsPromise():
		e.Mark(after.ID, &layout.ResolveRecord{})
	}
}

// leave resolves what it can of the edges of a future that has just ended, and marks it if
// something is left: dependants to notify, or more inputs to release than fit.
func (e *Edges) leave(before, after *layout.Row) {
	spec := after.Spec
	if before.State() == layout.Blocked && spec.ListsInputs() {
		e.Tx.ClearRange(kv.Prefix(e.Keys.InputsOf(after.ID)))
	}
	if !after.MayRunAgain() {
		e.release(after)
	}
	if after.Dependants && !e.Notified[after.ID] || spec.InputsRef != nil {
		e.Mark(after.ID, &layout.ResolveRecord{})
	}
}

func (e *Edges) remove(row *layout.Row) {
	if row.Object() != "" {
		e.release(row)
	}
	if row.Spec.HasInputs() || row.Spec.Unique != nil {
		e.Tx.Clear(e.Keys.Resolve(row.ID)) // left by one that was cancelled or replaced
	}
}

// release ends the use of the inputs that the spec holds.
func (e *Edges) release(row *layout.Row) {
	for _, input := range layout.UnpackIDs(row.Spec.Inputs) {
		e.Tx.Clear(e.Keys.Dependant(input, row.ID))
	}
}

// Mark has the edges of a future resolved after the commit.
func (e *Edges) Mark(id layout.ID, record *layout.ResolveRecord) {
	e.Tx.Set(e.Keys.Resolve(id), layout.Encode(record))
	e.Marks = append(e.Marks, Mark{ID: id})
}

// MarkCheck has it checked whether a future still waits for other inputs than one that
// has ended. Each mark has its own key: clearing one conflicts with no other.
func (e *Edges) MarkCheck(id, input layout.ID) {
	e.Tx.Set(e.Keys.PendingCheck(id, input), layout.Mark())
	e.Marks = append(e.Marks, Mark{id, input})
}

// Flush implements Index.
func (e *Edges) Flush(context.Context) error { return nil }
