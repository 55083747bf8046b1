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
		p.broken(Invariant(place.Kind), key, "future %s is %v and has no %s key", r.ID, r.State(), place.Kind)
	})
}

// checkWaiting compares a key of a place with the future that it stands for.
func (p *page) checkWaiting(it *item) {
	kind := it.Kind.Name
	p.row(it.ID, func(r *layout.Row) {
		if r.Spec == nil {
			p.broken(Invariant(kind), it.Raw, "future %s waits here and does not exist", r.ID)
			return
		}
		switch place := layout.PlaceOf(r); {
		case place == nil || place.Kind != kind:
			p.broken(Invariant(kind), it.Raw, "future %s is %v and has a key here", r.ID, r.State())
		case !bytes.Equal(place.Key(p.keys, r), it.Raw):
			p.broken(Invariant(kind), it.Raw, "future %s has the wrong %s key", r.ID, kind)
		case !bytes.Equal(place.Value(r), it.stored):
			p.broken(Invariant(kind), it.Raw, "future %s waits here with %.80q, not %.80q", r.ID, it.stored, place.Value(r))
		}
	})
	if kind == layout.PlaceAssigned {
		p.checkMark(it)
	}
}

// checkMark looks for the mark by which a janitor finds a worker that died with
// assignments.
func (p *page) checkMark(it *item) {
	worker := layout.WorkerID(it.Text("worker"))
	if mark := p.keys.Worker(worker, layout.WorkerAssigned); p.first(mark) {
		p.require(mark, func() {
			p.broken(layout.PlaceAssigned, it.Raw, "worker %s is not marked as one that futures wait for", worker)
		})
	}
}
