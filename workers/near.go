package workers

import (
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/workers/objects"
)

// isNear reports whether the worker has the object that a future must be near. If it
// does not, it says so, and blocked is how the claim ends: the future goes to another
// worker that has it, or waits until it is made again.
func (w *Worker) isNear(j *job) (near bool, blocked fdbmodel.Completion) {
	f := &j.future
	blocked = fdbmodel.Completion{Future: f, Block: true}
	if !f.Spec.MustBeNear {
		return true, blocked
	}
	rows, err := w.inputRows(j, []layout.ID{f.Spec.Near})
	if err == nil && (len(rows) == 0 || rows[0].State() != layout.Realized) {
		return false, blocked
	}
	if err == nil && rows[0].Object() == "" || err == nil && j.membership.kept.has(rows[0].Object()) {
		return true, blocked
	}
	if err == nil {
		r := rows[0].Result
		_, err = results.Of(w.cluster).ReportLost(j.ctx, f.Spec.Near, r.Token, []layout.WorkerID{j.membership.reg.ID()})
	}
	if err != nil {
		w.rare.Warn("what a future must be near can't be read; rejecting it", "future", f.ID, "error", err)
		return false, fdbmodel.Completion{Future: f, Reject: true}
	}
	return false, blocked
}

// has reports whether the worker has an object. A nil keeper has none.
func (k *keeper) has(object string) bool {
	if k == nil {
		return false
	}
	hash, err := objects.ParseHash(object)
	return err == nil && k.store.Has(hash)
}
