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
	state, n := r.State(), r.Spec.CountInputs()
	linked := n
	if state == layout.Blocked && !r.Spec.IsPromise() {
		linked = r.Blocked.Linked
		p.checkBlocked(r)
	}
	if state.Terminal() || r.Spec.InputsRef != nil {
		return
	}
	for _, input := range layout.UnpackIDs(r.Spec.Inputs)[:max(0, min(linked, n))] {
		p.checkEdge(r, input)
	}
}

// checkEdge looks for the key by which an input knows a future that needs it.
func (p *page) checkEdge(r *layout.Row, input layout.ID) {
	edge := p.keys.Dependant(input, r.ID)
	p.require(edge, func() {
		of := p.broken(InvariantEdge, edge, "future %s is %v and its input %s does not know it", r.ID, r.State(), input)
		p.row(input, func(in *layout.Row) {
			if in.Spec != nil {
				of.by(p.follow(r, p.use(input, r.ID)...)...)
			}
		})
	})
}

// use returns the changes that make an input known to a future.
func (p *page) use(input, by layout.ID) []change {
	return []change{set(p.keys.Dependant(input, by), layout.Mark()), set(p.keys.HasDependants(input), layout.Mark())}
}

// resolve returns the change that has a janitor link a blocked future to its inputs again, which
// unblocks or fails one that waits for none.
func (p *page) resolve(id layout.ID) change {
	return set(p.keys.Resolve(id), layout.Encode(&layout.ResolveRecord{}))
}

// checkBlockedRecord compares what says that a future waits for its inputs with its other
// records.
func (p *page) checkBlockedRecord(r *layout.Row) {
	key, state := p.keys.State(r.ID, layout.StateBlocked), r.State()
	n := r.Spec.CountInputs()
	switch {
	case r.Blocked != nil && state != layout.Blocked:
		p.broken(InvariantBlocked, key, "future %s is %v and waits for inputs", r.ID, state)
	case r.Spec.MustBeNear && r.Spec.InputsRef == nil &&
		!slices.Contains(layout.UnpackIDs(r.Spec.Inputs), r.Spec.Near):
		p.broken(InvariantEdge, p.keys.Spec(r.ID), "future %s must be near %s, which is not an input of it", r.ID,
			r.Spec.Near)
	case r.Blocked != nil && (n == 0 && !r.Spec.IsPromise() || r.Blocked.Linked < 0 || r.Blocked.Linked > n):
		p.broken(InvariantBlocked, key, "future %s is linked to %d of %d inputs", r.ID, r.Blocked.Linked, n)
	}
}

// checkBlocked looks for what will unblock a future.
func (p *page) checkBlocked(r *layout.Row) {
	marks := p.tx.GetRange(kv.Prefix(p.keys.Resolve(r.ID)), kv.RangeOptions{Limit: 1}) // a pending check too
	waits := p.waits(r)
	p.later(func(ctx context.Context) error {
		marked, err := marks.Wait(ctx)
		if err != nil || len(marked.Items) > 0 {
			return err
		}
		key := p.keys.State(r.ID, layout.StateBlocked)
		again := p.follow(r, p.resolve(r.ID))
		if n := r.Spec.CountInputs(); r.Blocked.Linked < n {
			p.broken(InvariantBlocked, key, "future %s is linked to %d of %d inputs, and the others won't be linked", r.ID,
				r.Blocked.Linked, n).by(again...)
			return nil
		}
		waiting, failed, err := waits(ctx)
		switch {
		case err != nil:
			return err
		case !failed.IsZero():
			p.broken(InvariantEdge, key, "future %s waits for input %s, which has failed and does not notify it", r.ID, failed).
				by(again...)
		case !waiting:
			p.broken(InvariantBlocked, key, "future %s is blocked and waits for no input", r.ID).by(again...)
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
	var user *layout.Row // if it may wait for the input
	p.row(id, func(r *layout.Row) {
		isInput := r.Spec != nil && (r.Spec.InputsRef != nil || slices.Contains(layout.UnpackIDs(r.Spec.Inputs), input))
		stray := p.follow(r, drop(it.Raw))
		switch {
		case r.Spec == nil:
			p.broken(InvariantEdge, it.Raw, "future %s waits for an input and does not exist", id).by(stray...)
		case r.State() != layout.Blocked:
			of := p.broken(InvariantEdge, it.Raw, "future %s is %v and waits for an input", id, r.State())
			if !isInput || r.State() == layout.Claimed || r.State().Terminal() {
				of.by(stray...) // else, what says that it is blocked may be lost
			}
		case !r.Spec.ListsInputs():
			p.broken(InvariantEdge, it.Raw, "future %s has %d inputs and lists those that it waits for", id,
				r.Spec.CountInputs()).by(stray...)
		case !isInput:
			p.broken(InvariantEdge, it.Raw, "future %s waits for %s, which is not an input of it", id, input).by(stray...)
		default:
			user = r
		}
	})
	marked := p.toResolve(input)
	exists := false
	p.row(input, func(r *layout.Row) {
		exists = r.Spec != nil
		switch {
		case r.Spec == nil:
			p.broken(InvariantEdge, it.Raw, "future %s waits for input %s, which does not exist", id, input)
		case r.State().Terminal() && !*marked:
			of := p.broken(InvariantEdge, it.Raw, "future %s waits for input %s, which is %v and does not notify it", id, input,
				r.State())
			if user != nil {
				of.by(p.follow(user, drop(it.Raw), p.resolve(id))...)
			}
		}
	})
	p.require(p.keys.Dependant(input, id), func() {
		of := p.broken(InvariantEdge, it.Raw, "future %s waits for input %s, which does not know it", id, input)
		if user != nil && exists {
			of.by(p.follow(user, p.use(input, id)...)...)
		}
	})
}

// checkDependant compares the use of a result with both futures.
func (p *page) checkDependant(it *item) {
	id, input := it.ID, it.Future("input")
	pending := false // the input was never over
	p.row(input, func(r *layout.Row) {
		pending = r.Spec != nil && !r.State().Terminal() && r.Attempts.Rebuilt == 0
		switch {
		case r.Spec == nil:
			p.broken(InvariantEdge, it.Raw, "future %s uses future %s, which does not exist", id, input)
		case !r.Dependants:
			p.broken(InvariantEdge, it.Raw, "future %s is used by %s and not marked as one that is used", input, id).
				by(set(p.keys.HasDependants(input), layout.Mark()))
		}
	})
	// An end releases the inputs that a spec holds itself, and leaves a mark to release those of a longer list.
	marked := p.toResolve(id)
	p.row(id, func(r *layout.Row) {
		switch {
		case r.Spec == nil:
			p.broken(InvariantEdge, it.Raw, "future %s uses future %s and does not exist", id, input).
				by(p.follow(r, drop(it.Raw))...)
		case r.State().Terminal() && !r.MayRunAgain() && !(*marked && r.Spec.InputsRef != nil):
			p.broken(InvariantEdge, it.Raw, "future %s is %v and still uses future %s", id, r.State(), input).
				by(p.follow(r, drop(it.Raw))...)
		case pending && r.State() == layout.Blocked && r.Spec.ListsInputs() && !*marked:
			list := p.keys.Input(id, input)
			p.require(list, func() {
				p.broken(InvariantEdge, list, "future %s is not listed to wait for input %s", id, input).
					by(p.follow(r, set(list, layout.Mark()))...)
			})
		}
	})
}

// checkCopy compares a copy of a result with the future. That its worker is dead is
// seen, and the copy removed, by readers of the result.
func (p *page) checkCopy(it *item) {
	record, is := it.Record.(*layout.CopyRecord)
	if !is || it.err != nil {
		return
	}
	p.row(it.ID, func(r *layout.Row) {
		switch {
		case r.Spec == nil:
			p.broken(InvariantCopy, it.Raw, "future %s has a copy of its result and does not exist", it.ID).
				by(p.follow(r, drop(it.Raw))...)
		case r.Object() != record.Object:
			p.broken(InvariantCopy, it.Raw, "future %s is %v and has a copy of another result", it.ID, r.State()).
				by(p.follow(r, drop(it.Raw))...)
		}
	})
}

// checkResolve notes dependencies that are to be resolved.
func (p *page) checkResolve(it *item) {
	p.row(it.ID, func(r *layout.Row) {
		if r.Spec == nil {
			p.broken(InvariantEdge, it.Raw, "dependencies of future %s are to be resolved, which does not exist", it.ID).
				by(p.follow(r, drop(it.Raw))...)
			return
		}
		p.note(InvariantEdge, it.Raw, "dependencies of future %s are to be resolved", it.ID)
	})
}
