package modeltest

import (
	"context"
	"errors"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
)

// inputs chooses some futures, among them earlier ones of the same call.
func (m *Machine) inputs(earlier []fdbmodel.Submission) []layout.ID {
	var ids []layout.ID
	for range m.random.IntN(layout.MaxUnlistedInputs + 2) {
		if n := len(earlier); n > 0 && m.random.IntN(2) == 0 && !earlier[n-1].ID.IsZero() && earlier[n-1].Unique == nil {
			ids = append(ids, earlier[n-1].ID)
		} else if id := m.some(); m.Rows[id] != nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// isUpstream reports whether a future failed because of an input.
func (m *Machine) isUpstream(r *layout.Row) bool {
	return r.State() == layout.Failed && r.Exception.Kind == layout.KindUpstream && r.Spec.HasInputs()
}

// isSettled reports whether a change follows from the inputs of a future, which
// any operation may resolve that ends one of them.
func (m *Machine) isResolved(before, after *layout.Row, now map[layout.ID]*layout.Row) bool {
	if before == nil || after == nil || before.State() != layout.Blocked {
		return false
	}
	switch after.State() {
	case layout.Blocked:
		return after.Blocked.Linked > before.Blocked.Linked && after.Attempts == before.Attempts
	case layout.Ready, layout.Delayed:
		waits := before.Attempts
		waits.Near, waits.NearWait = after.Attempts.Near, after.Attempts.NearWait
		if waits.Near != "" && !m.takesObjects(after) {
			return false
		}
		if after.State() == layout.Ready {
			waits.Due = 0
		}
		return after.Attempts == waits
	}
	failed := false
	for _, id := range layout.UnpackIDs(after.Spec.Inputs) {
		for _, input := range []*layout.Row{m.Rows[id], now[id]} {
			failed = failed || input == nil || input.State() == layout.Failed
		}
	}
	return failed && m.isUpstream(after)
}

// realized returns a completion with the result that a future of the machine has.
func realized(f *fdbmodel.ClaimedFuture) fdbmodel.Completion {
	result := &layout.Result{Value: []byte(f.Token.String())}
	if f.Spec != nil && f.Spec.AsObject {
		result = &layout.Result{Object: f.Token.String(), Size: 7 + f.Token.Sequence%2<<28}
	}
	return fdbmodel.Completion{Future: f, Result: result}
}

// lose reports that the result of a future could not be had from some workers.
func (m *Machine) lose(ctx context.Context) (change, error) {
	id := m.someOr(hasObject)
	if m.random.IntN(2) == 0 {
		id = m.awaitedOr(id)
	}
	row := m.Rows[id]
	if row == nil || row.Result == nil {
		return none, nil
	}
	token := row.Result.Token
	var missing []layout.WorkerID
	for _, w := range m.workers {
		if m.random.IntN(4) > 0 {
			missing = append(missing, w.ID())
			m.missed[missedCopy{id, w.ID()}] = true
		}
	}
	state, err := results.Of(m.C).ReportLost(ctx, id, token, missing)
	m.logf("lose %s at %v: %v %v", id, missing, state, err)
	if errors.Is(err, fdbmodel.ErrNotFound) || m.isAwaited(id, err) {
		err = nil
	}
	return func(before, after *layout.Row) bool {
		if before == nil || after == nil || after.ID != id || before.State() != layout.Realized ||
			before.Result.Token != token || before.Result.Object == "" {
			return false
		}
		return m.isLost(before, after)
	}, err
}

// block gives a claimed future back because an input was lost.
func (m *Machine) block(ctx context.Context) (change, error) {
	w, f := m.heldBest(m.blockRank)
	if f == nil {
		return none, nil
	}
	outcomes, err := w.Finish(ctx, []fdbmodel.Completion{{Future: f, Block: true}})
	m.logf("block %s by %s (gone %t): %v %v", f.ID, w.ID(), w.gone, outcomes, err)
	return func(before, after *layout.Row) bool {
		if before == nil || after == nil || after.ID != f.ID || before.State() != layout.Claimed ||
			before.Claim.Token != f.Token {
			return false
		}
		switch after.State() {
		case layout.Failed:
			return before.Cancel != nil || m.isUpstream(after)
		case layout.Blocked, layout.Ready:
			return after.Attempts.Failed == before.Attempts.Failed && after.Attempts.Rejected == before.Attempts.Rejected
		}
		return false
	}, err
}

// clone adds a copy of a result.
func (m *Machine) clone(ctx context.Context) (change, error) {
	id := m.someOr(func(r *layout.Row) bool { return hasObject(r) && m.placesUnplaceable(r.ID) })
	w, row := m.worker(false), m.Rows[id]
	if w == nil || row == nil || row.Result == nil {
		return none, nil
	}
	alone := m.random.IntN(2) == 0
	err := results.Of(m.C).AddCopy(ctx, w.ID(), row.ID, row.Result.Token, alone)
	m.logf("clone %s by %s (gone %t, alone %t): %v", row.ID, w.ID(), w.gone, alone, err)
	if w.gone && err == nil {
		m.fail("a dead worker has a copy of a result")
	}
	if errors.Is(err, fdbmodel.ErrReaped) && w.gone || errors.Is(err, fdbmodel.ErrTransition) {
		err = nil
	}
	return none, err
}

// verifyInputs requires that what may run has all that it takes.
func (m *Machine) verifyInputs(now map[layout.ID]*layout.Row) {
	for id, row := range now {
		if s := row.State(); s == layout.Blocked || s.Terminal() {
			continue
		}
		for _, input := range layout.UnpackIDs(row.Spec.Inputs) {
			from := now[input]
			wasLost := from != nil && m.lost[input]
			if !wasLost && (from == nil || from.State() != layout.Realized) {
				m.fail("future %s is %v, and its input %s is %s", id, row.State(), input, digest(from))
			}
		}
	}
}

func (m *Machine) resolve(ctx context.Context) (change, error) {
	n, more, err := m.C.ResolveEdges(ctx)
	m.logf("resolve: %d %t %v", n, more, err)
	return none, err
}
