package audit

import (
	"context"
	"slices"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// checkEdges compares the inputs of a future with the keys of its edges. Of a
// long list it checks none here: each of its keys is checked by itself.
func (p *page) checkEdges(r *layout.Row) {
	key, state := p.keys.State(r.ID, layout.StateBlocked), r.State()
	n := r.Spec.CountInputs()
	linked := n
	switch {
	case r.Blocked != nil && state != layout.Blocked:
		p.broken(InvariantBlocked, key, "future %s is %v and waits for inputs", r.ID, state)
	case r.Spec.MustBeNear && r.Spec.InputsRef == nil &&
		!slices.Contains(layout.UnpackIDs(r.Spec.Inputs), r.Spec.Near):
		p.broken(InvariantEdge, p.keys.Spec(r.ID), "future %s must be near %s, which is not an input of it", r.ID,
			r.Spec.Near)
	case r.Blocked != nil && (n == 0 || r.Blocked.Linked < 0 || r.Blocked.Linked > n):
		p.broken(InvariantBlocked, key, "future %s is linked to %d of %d inputs", r.ID, r.Blocked.Linked, n)
	case state == layout.Blocked:
		linked = r.Blocked.Linked
		p.checkBlocked(r)
	}
	if state.Terminal() || r.Spec.InputsRef != nil {
		return
	}
	for _, input := range layout.UnpackIDs(r.Spec.Inputs)[:max(0, min(linked, n))] {
		edge := p.keys.Dependant(input, r.ID)
		p.require(edge, func() {
			p.broken(InvariantEdge, edge, "future %s is %v and its input %s does not know it", r.ID, state, input)
		})
	}
}

// checkBlocked looks for what will unblock a future.
func (p *page) checkBlocked(r *layout.Row) {
	marks := p.tx.GetRange(kv.Prefix(p.keys.Resolve(r.ID)), kv.RangeOptions{Limit: 1}) // a pending check too
	waits := p.waits(r)
	p.judges = append(p.judges, func(ctx context.Context) error {
		marked, err := marks.Wait(ctx)
		if err != nil || len(marked.Items) > 0 {
			return err
		}
		key := p.keys.State(r.ID, layout.StateBlocked)
		if n := r.Spec.CountInputs(); r.Blocked.Linked < n {
			p.broken(InvariantBlocked, key, "future %s is linked to %d of %d inputs, and the others won't be linked", r.ID,
				r.Blocked.Linked, n)
			return nil
		}
		waiting, failed, err := waits(ctx)
		switch {
		case err != nil:
			return err
		case !failed.IsZero():
			p.broken(InvariantEdge, key, "future %s waits for input %s, which has failed and does not notify it", r.ID, failed)
		case !waiting:
			p.broken(InvariantBlocked, key, "future %s is blocked and waits for no input", r.ID)
		}
		return nil
	})
}

// waits requests whether a blocked future waits for an input: a listed one, or, without a
// list, one that is not over or is yet to notify it. It returns an input that has failed
// and won't notify it, if there is one.
func (p *page) waits(r *layout.Row) func(context.Context) (waiting bool, failed layout.ID, err error) {
	if r.Spec.ListsInputs() {
		list := p.tx.GetRange(kv.Prefix(p.keys.InputsOf(r.ID)), kv.RangeOptions{Limit: 1})
		return func(ctx context.Context) (bool, layout.ID, error) {
			page, err := list.Wait(ctx)
			return len(page.Items) > 0, layout.ID{}, err
		}
	}
	waiting, failed := 0, layout.ID{}
	for _, id := range layout.UnpackIDs(r.Spec.Inputs) {
		waiting++ // until it is read, and if it can't be
		marked := p.toResolve(id)
		p.row(id, func(input *layout.Row) {
			if input.Spec == nil || !input.State().Terminal() || *marked {
				return
			}
			waiting--
			if input.State() == layout.Failed {
				failed = id
			}
		})
	}
	return func(context.Context) (bool, layout.ID, error) { return waiting > 0, failed, nil }
}

// toResolve requests whether dependencies of a future are to be resolved.
func (p *page) toResolve(id layout.ID) *bool {
	marked := new(bool)
	p.get(p.keys.Resolve(id), func(value []byte) { *marked = value != nil })
	return marked
}

// checkInput compares an input that a future waits for with both futures.
func (p *page) checkInput(it *item) {
	id, input := it.ID, it.Future("input")
	p.row(id, func(r *layout.Row) {
		switch {
		case r.Spec == nil:
			p.broken(InvariantEdge, it.Raw, "future %s waits for an input and does not exist", id)
		case r.State() != layout.Blocked:
			p.broken(InvariantEdge, it.Raw, "future %s is %v and waits for an input", id, r.State())
		case !r.Spec.ListsInputs():
			p.broken(InvariantEdge, it.Raw, "future %s has %d inputs and lists those that it waits for", id,
				r.Spec.CountInputs())
		case r.Spec.InputsRef == nil && !slices.Contains(layout.UnpackIDs(r.Spec.Inputs), input):
			p.broken(InvariantEdge, it.Raw, "future %s waits for %s, which is not an input of it", id, input)
		}
	})
	marked := p.toResolve(input)
	p.row(input, func(r *layout.Row) {
		switch {
		case r.Spec == nil:
			p.broken(InvariantEdge, it.Raw, "future %s waits for input %s, which does not exist", id, input)
		case r.State().Terminal() && !*marked:
			p.broken(InvariantEdge, it.Raw, "future %s waits for input %s, which is %v and does not notify it", id, input,
				r.State())
		}
	})
	p.require(p.keys.Dependant(input, id), func() {
		p.broken(InvariantEdge, it.Raw, "future %s waits for input %s, which does not know it", id, input)
	})
}

// checkDependant compares the use of a result with both futures.
func (p *page) checkDependant(it *item) {
	id, input := it.ID, it.Future("input")
	p.row(input, func(r *layout.Row) {
		switch {
		case r.Spec == nil:
			p.broken(InvariantEdge, it.Raw, "future %s uses future %s, which does not exist", id, input)
		case !r.Dependants:
			p.broken(InvariantEdge, it.Raw, "future %s is used by %s and not marked as one that is used", input, id)
		}
	})
	marked := p.toResolve(id)
	p.row(id, func(r *layout.Row) {
		switch {
		case r.Spec == nil:
			p.broken(InvariantEdge, it.Raw, "future %s uses future %s and does not exist", id, input)
		case r.State().Terminal() && !*marked && !r.MayRunAgain():
			p.broken(InvariantEdge, it.Raw, "future %s is %v and still uses future %s", id, r.State(), input)
		}
	})
}

// checkCopy compares a copy of a result with the future. That its worker is dead is
// seen, and the copy removed, by readers of the result.
func (p *page) checkCopy(it *item) {
	record, readable := it.Record.(*layout.CopyRecord)
	if !readable {
		return
	}
	p.row(it.ID, func(r *layout.Row) {
		switch {
		case r.Spec == nil:
			p.broken(InvariantCopy, it.Raw, "future %s has a copy of its result and does not exist", it.ID)
		case r.Object() != record.Object:
			p.broken(InvariantCopy, it.Raw, "future %s is %v and has a copy of another result", it.ID, r.State())
		}
	})
}

// checkResolve notes dependencies that are to be resolved.
func (p *page) checkResolve(it *item) {
	p.row(it.ID, func(r *layout.Row) {
		if r.Spec == nil {
			p.broken(InvariantEdge, it.Raw, "dependencies of future %s are to be resolved, which does not exist", it.ID)
			return
		}
		p.note(InvariantEdge, it.Raw, "dependencies of future %s are to be resolved", it.ID)
	})
}
