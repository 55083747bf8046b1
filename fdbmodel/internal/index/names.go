package index

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// Names hold the names of unique futures, each as long as its future may have it.
type Names struct{ *Set }

// Update implements Index. A future gives up its name when it ends, and takes it again
// when it starts over. One that runs again because its result was lost does not take it:
// that it ended once still holds.
func (n Names) Update(before, after *layout.Row) {
	switch {
	case before == nil:
		if after.Spec.Unique != nil {
			n.take(after)
		}
	case before.Spec.Unique == nil:
	case after == nil:
		n.remove(before)
	default:
		n.change(before, after)
	}
}

func (n Names) change(before, after *layout.Row) {
	from, to := before.State().Terminal(), after.State().Terminal()
	u, free := after.Spec.Unique, after.Spec.FreeAt()
	switch {
	case from == to || to && u.Until == layout.UntilEver:
	case to && free > n.Now:
		n.Tx.Set(n.Keys.UniqueDue(free, u.Name, after.ID), nil)
	case to:
		n.Tx.Clear(n.Keys.Unique(u.Name, after.ID))
	case after.Attempts.Rebuilt == before.Attempts.Rebuilt || before.State() == layout.Failed:
		n.take(after)
		if free > 0 {
			n.Tx.Clear(n.Keys.UniqueDue(free, u.Name, after.ID))
		}
	}
}

// take writes that a new future, or one that starts over, has its name.
func (n Names) take(row *layout.Row) {
	n.Tx.Set(n.Keys.Unique(row.Spec.Unique.Name, row.ID), layout.Encode(layout.UniqueOf(row.Spec)))
}

// remove clears what a future that is removed leaves of its name, if that does not outlive
// it.
func (n Names) remove(row *layout.Row) {
	u, free := row.Spec.Unique, row.Spec.FreeAt()
	if u.Until == layout.UntilEver || free > n.Now {
		return
	}
	n.Clear(u.Name, free, row.ID)
}

// Clear has a future give up a name that it may have until a time, 0 for none.
func (n Names) Clear(name layout.UniqueName, freeAt int64, id layout.ID) {
	n.Tx.Clear(n.Keys.Unique(name, id))
	if freeAt > 0 {
		n.Tx.Clear(n.Keys.UniqueDue(freeAt, name, id))
	}
}

// Flush implements Index.
func (n Names) Flush(context.Context) error { return nil }
