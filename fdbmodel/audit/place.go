package audit

import (
	"bytes"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// checkPlace looks for an unclaimed future where it has to wait.
func (p *page) checkPlace(r *layout.Row) {
	place := layout.PlaceOf(r)
	if place == nil {
		return
	}
	key := place.Key(p.keys, r)
	p.require(key, func() {
		changes := []change{set(key, place.Value(r))}
		if place.Kind == layout.PlaceAssigned {
			changes = append(changes, set(p.keys.Worker(r.Attempts.Assigned, layout.WorkerAssigned), layout.Mark()))
		}
		of := p.broken(Invariant(place.Kind), key, "future %s is %v and has no %s key", r.ID, r.State(), place.Kind)
		p.runnable(r, of.by(p.follow(r, changes...)...))
	})
}

// runnable leaves a future alone that has an input which never was realized, or too many to look
// at: what said that it waits for them may be lost.
func (p *page) runnable(r *layout.Row, of *found) {
	if r.Spec.InputsRef != nil {
		of.by()
	}
	for _, input := range layout.UnpackIDs(r.Spec.Inputs) {
		p.row(input, func(in *layout.Row) {
			if in.Spec == nil || in.State() != layout.Realized && !wasLost(in) {
				of.by()
			}
		})
	}
}

// wasLost reports whether a future that is not realized was so, until its result was lost.
func wasLost(r *layout.Row) bool {
	return r.Attempts.Rebuilt > 0 || r.Spec.AsObject && r.State() == layout.Failed && r.Exception.Kind == layout.KindLost
}

// checkWaiting compares a key of a place with the future that it stands for.
func (p *page) checkWaiting(it *item) {
	kind := it.Kind.Name
	stray := false
	p.row(it.ID, func(r *layout.Row) {
		stray = true
		if r.Spec == nil {
			p.broken(Invariant(kind), it.Raw, "future %s waits here and does not exist", r.ID).
				by(p.follow(r, drop(it.Raw))...)
			return
		}
		switch place := layout.PlaceOf(r); {
		case place == nil || place.Kind != kind:
			p.broken(Invariant(kind), it.Raw, "future %s is %v and has a key here", r.ID, r.State()).
				by(p.follow(r, drop(it.Raw))...)
		case !bytes.Equal(place.Key(p.keys, r), it.Raw):
			p.broken(Invariant(kind), it.Raw, "future %s has the wrong %s key", r.ID, kind).by(p.follow(r, drop(it.Raw))...)
		default:
			if stray = false; !bytes.Equal(place.Value(r), it.stored) {
				p.broken(Invariant(kind), it.Raw, "future %s waits here with %.80q, not %.80q", r.ID, it.stored, place.Value(r)).
					by(p.follow(r, set(it.Raw, place.Value(r)))...)
			}
		}
	})
	if kind == layout.PlaceAssigned {
		p.checkMark(it, &stray)
	}
}

// checkMark looks for the mark by which a janitor finds a worker that died with
// assignments. A stray assignment needs none.
func (p *page) checkMark(it *item, stray *bool) {
	worker := layout.WorkerID(it.Text("worker"))
	if mark := p.keys.Worker(worker, layout.WorkerAssigned); p.first(mark) {
		p.require(mark, func() {
			of := p.broken(layout.PlaceAssigned, it.Raw, "worker %s is not marked as one that futures wait for", worker)
			if !*stray {
				of.by(set(mark, layout.Mark()))
			}
		})
	}
}
