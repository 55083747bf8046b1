package audit

import (
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/promises"
)

// checkPromise compares what opens a promise with the future. It returns false if nothing follows
// from the records of a promise.
func (p *page) checkPromise(r *layout.Row, opens *item) bool {
	key, state := promises.Keys(p.keys).Promise(r.ID), r.State()
	switch {
	case opens == nil && !r.Spec.IsPromise():
	case !r.Spec.IsPromise():
		p.broken(InvariantPromise, key, "future %s is no promise, and a token opens it", r.ID)
	case state != layout.Blocked && !state.Terminal():
		p.broken(InvariantPromise, p.keys.Spec(r.ID), "promise %s is %v", r.ID, state)
		return false
	case opens == nil:
		p.broken(InvariantPromise, key, "no token opens promise %s: draw another one", r.ID)
	case !opens.Record.(*promises.Record).IsSound():
		p.broken(InvariantPromise, key, "no token can open promise %s: draw another one", r.ID)
	}
	return true
}
