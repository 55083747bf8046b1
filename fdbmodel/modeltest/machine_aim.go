package modeltest

import (
	"bytes"
	"context"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Operations that aim at futures in states which few of them reach.

// rare are operations that only some states allow, and that should not wait until they are drawn then.
func (m *Machine) rare() (ops []operation) {
	if _, kills := m.any(hasKilled); kills {
		ops = append(ops, m.poison, m.poison)
	}
	if _, f := m.heldBest(m.lateRank); f != nil && m.lateRank(nil, f) > 1 {
		ops = append(ops, m.late)
	}
	if _, f := m.heldBest(m.blockRank); f != nil && m.blockRank(nil, f) > 1 {
		ops = append(ops, m.block)
	}
	if w, f := m.heldBest(m.bundleRank); f != nil && m.bundleRank(w, f) > 0 {
		ops = append(ops, m.gather)
	}
	if _, f := m.heldBest(m.cancelRank); f != nil {
		ops = append(ops, m.stop)
	}
	if _, waits := m.any(func(r *layout.Row) bool { return r.Attempts.Unplaceable }); waits {
		ops = append(ops, m.clone, m.replace)
	}
	if _, waits := m.any(func(r *layout.Row) bool { return r.State() == layout.Delayed && r.Spec.MustBeNear }); waits {
		ops = append(ops, m.retry)
	}
	if _, found := m.any(func(r *layout.Row) bool { return r.State() == layout.Blocked && m.died(r) != nil }); found {
		ops = append(ops, m.reappear, m.reappear)
	}
	return ops
}

// hasKilled reports whether a future that is to run again has killed workers.
func hasKilled(r *layout.Row) bool { return r.Attempts.Crashes > 0 && !r.State().Terminal() }

// died returns a worker that a future knows to have died with it, nil if there is none.
func (m *Machine) died(r *layout.Row) *actorWorker {
	for _, w := range m.workers {
		if _, died := r.Attempts.Deaths.Of(w.ID()); died && w.gone {
			return w
		}
	}
	return nil
}

// any returns one of the futures for which is holds. It reports false, and the id of none, if there is
// none.
func (m *Machine) any(is func(*layout.Row) bool) (layout.ID, bool) {
	var ids []layout.ID
	for id, row := range m.Rows {
		if is(row) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return layout.ID{15: 1}, false
	}
	slices.SortFunc(ids, func(a, b layout.ID) int { return bytes.Compare(a[:], b[:]) })
	return ids[m.random.IntN(len(ids))], true
}

// someOr returns one of the futures for which is holds, in two of three calls, else any.
func (m *Machine) someOr(is func(*layout.Row) bool) layout.ID {
	if id, found := m.any(is); found && m.random.IntN(3) > 0 {
		return id
	}
	return m.some()
}

func isAssigned(r *layout.Row) bool { return r.State() == layout.Ready && r.Attempts.Assigned != "" }

func hasObject(r *layout.Row) bool { return r.Object() != "" }

// by returns the worker with an id, nil if the machine has none.
func (m *Machine) by(id layout.WorkerID) *actorWorker {
	i := slices.IndexFunc(m.workers, func(w *actorWorker) bool { return w.ID() == id })
	if i < 0 {
		return nil
	}
	return m.workers[i]
}

// holds reports whether a future is still claimed with the token that its worker has.
func (m *Machine) holds(f *fdbmodel.ClaimedFuture) bool {
	row := m.Rows[f.ID]
	return row != nil && row.State() == layout.Claimed && row.Claim.Token == f.Token
}

// follow submits futures that are to be near an object, some of which only a few workers could run.
func (m *Machine) follow(ctx context.Context) (change, error) {
	object, found := m.any(hasObject)
	if !found {
		return none, nil
	}
	subs := make([]fdbmodel.Submission, 1+m.random.IntN(2))
	drawn, err := m.C.DrawIDs(len(subs))
	m.require(err)
	for i := range subs {
		subs[i] = fdbmodel.Submission{ID: drawn[i], Drawn: true, Inputs: []layout.ID{object}, Spec: layout.Spec{
			Function: "go:f", MaxRetries: 3, Near: object, MustBeNear: m.random.IntN(4) > 0,
			AsObject: m.random.IntN(2) == 0, AllowReconstruction: m.random.IntN(4) > 0,
		}}
		if m.random.IntN(3) == 0 {
			subs[i].Spec.Requirements.Labels = zoneA
		}
		if m.random.IntN(2) == 0 {
			m.limit(&subs[i].Spec)
		}
	}
	return m.submitAll(ctx, subs)
}

// lateRank ranks claims that were taken from their workers.
func (m *Machine) lateRank(_ *actorWorker, f *fdbmodel.ClaimedFuture) int {
	switch row := m.Rows[f.ID]; {
	case row == nil || m.holds(f):
		return -1
	case row.State() == layout.Blocked:
		return 2
	case row.State().Terminal():
		return 0
	}
	return 1
}

// blockRank ranks claims of futures with inputs: best are those that end otherwise, or that have lost one.
func (m *Machine) blockRank(_ *actorWorker, f *fdbmodel.ClaimedFuture) int {
	switch {
	case f.Spec == nil || !f.Spec.HasInputs():
		return -1
	case !m.holds(f):
		return 0
	}
	row := m.Rows[f.ID]
	at, _ := row.Limit()
	isOver := at != 0 && at <= layout.Millis(m.Clock.Now())
	if isOver || row.Cancel != nil || slices.ContainsFunc(layout.UnpackIDs(row.Spec.Inputs), m.isOpen) {
		return 2
	}
	return 1
}

func (m *Machine) isOpen(id layout.ID) bool {
	row := m.Rows[id]
	return row != nil && !row.State().Terminal()
}

// late has a worker end a claim that was taken from it.
func (m *Machine) late(ctx context.Context) (change, error) {
	w, f := m.heldBest(m.lateRank)
	if f == nil {
		return none, nil
	}
	ways := endings
	if m.random.IntN(2) == 0 {
		ways = []ending{{"expire", []layout.State{layout.Ready}, 0, 0, expired}}
	}
	return m.end(ctx, w, []*fdbmodel.ClaimedFuture{f}, ways)
}

// heldBest returns one of the claims with the highest rank, none if that is negative.
func (m *Machine) heldBest(rank func(*actorWorker, *fdbmodel.ClaimedFuture) int,
) (*actorWorker, *fdbmodel.ClaimedFuture) {
	var of *actorWorker
	var best *fdbmodel.ClaimedFuture
	most := 0
	for _, w := range m.workers {
		for _, f := range w.held {
			if n := rank(w, f); n > most || n == most && (best == nil || m.random.IntN(2) == 0) {
				of, best, most = w, f, n
			}
		}
	}
	return of, best
}

// poison brings a future that has killed workers to where it kills the next one.
func (m *Machine) poison(ctx context.Context) (change, error) {
	id, found := m.any(hasKilled)
	if !found {
		return m.wreck(ctx)
	}
	switch m.Rows[id].State() {
	case layout.Delayed:
		return m.promote(ctx)
	case layout.Claimed:
		return m.wreck(ctx)
	}
	return m.claim(ctx)
}

// cancelRank ranks claims of futures that are to be cancelled.
func (m *Machine) cancelRank(_ *actorWorker, f *fdbmodel.ClaimedFuture) int {
	if m.holds(f) && m.Rows[f.ID].Cancel != nil {
		return 0
	}
	return -1
}

// stop has a worker end what is to be cancelled, without a result.
func (m *Machine) stop(ctx context.Context) (change, error) {
	w, f := m.heldBest(m.cancelRank)
	if f == nil {
		return none, nil
	}
	ways := slices.DeleteFunc(slices.Clone(endings), func(e ending) bool { return e.name == "realize" })
	return m.end(ctx, w, []*fdbmodel.ClaimedFuture{f}, ways)
}

// wreck has a worker die of what it begins: of one that has killed others, if it holds one.
func (m *Machine) wreck(ctx context.Context) (change, error) {
	w, culprit := m.heldBest(func(w *actorWorker, f *fdbmodel.ClaimedFuture) int {
		if w.gone || !m.holds(f) {
			return -1
		}
		return m.Rows[f.ID].Attempts.Crashes
	})
	if culprit == nil {
		return none, nil
	}
	w.begun[culprit.ID] = culprit.Token.Sequence
	err := w.Begin(ctx, culprit)
	m.logf("%s begins %s, which ends it: %v", w.ID(), culprit.ID, err)
	if err != nil {
		return none, err
	}
	return m.forceReapOf(ctx, w)
}

// reappear has a worker leave that was declared dead, and that futures know to be.
func (m *Machine) reappear(ctx context.Context) (change, error) {
	blocked := m.random.IntN(2) == 0
	id, found := m.any(func(r *layout.Row) bool {
		return m.died(r) != nil && !r.State().Terminal() && (!blocked || r.State() == layout.Blocked)
	})
	if !found {
		return none, nil
	}
	return m.leaveAs(ctx, m.died(m.Rows[id]))
}

// retried returns a future to retry: often one that waits for a time, or that failed and may never run.
func (m *Machine) retried() layout.ID {
	isNear := m.random.IntN(2) == 0
	switch m.random.IntN(3) {
	case 0:
		return m.someOr(func(r *layout.Row) bool {
			return r.State() == layout.Delayed && (r.Spec.MustBeNear || !isNear)
		})
	case 1:
		return m.someOr(func(r *layout.Row) bool {
			return r.State() == layout.Failed && (r.Spec.IsPut() || r.Spec.Bundle || r.Spec.IsPromise())
		})
	}
	return m.some()
}
