package modeltest

import (
	"context"
	"errors"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// bundleRank ranks claims of bundles: best are those that another worker holds by now.
func (m *Machine) bundleRank(w *actorWorker, f *fdbmodel.ClaimedFuture) int {
	row := m.Rows[f.ID]
	switch {
	case f.Spec == nil || !f.Spec.Bundle:
		return -1
	case !w.gone && row != nil && row.State() == layout.Claimed && !m.holds(f):
		return 1
	}
	return 0
}

// gather has a worker take members for a bundle that it holds, or held.
func (m *Machine) gather(ctx context.Context) (change, error) {
	w, bundle := m.heldBest(m.bundleRank)
	if bundle == nil {
		return none, nil
	}
	got, err := w.Gather(ctx, bundle, 1+m.random.IntN(4))
	m.logf("gather for %s by %s (gone %t): %d %v", bundle.ID, w.ID(), w.gone, len(got.Members), err)
	if w.gone && err == nil {
		m.fail("a dead worker has gathered")
	}
	w.doubt = w.doubt || wasCut(ctx, err)
	if errors.Is(err, fdbmodel.ErrReaped) && w.gone || errors.Is(err, fdbmodel.ErrTransition) {
		err = nil
	}
	if len(got.Members) > 4 {
		m.fail("gathered %d members", len(got.Members))
	}
	took, cut := map[layout.ID]bool{}, err != nil
	for i := range got.Members {
		f := &got.Members[i]
		if f.Err != nil || f.Spec.Lane != bundle.Spec.Lane {
			m.fail("gathered %s of lane %v for a bundle of %v: %v", f.ID, f.Spec.Lane, bundle.Spec.Lane, f.Err)
		}
		took[f.ID] = true
		w.held = append(w.held, f)
	}
	return func(before, after *layout.Row) bool {
		return before != nil && after != nil && before.InLine() && after.State() == layout.Claimed &&
			(cut || took[after.ID]) && after.Claim.Worker == w.ID()
	}, err
}

// isCalled reports whether a lane has admitted a bundle, which may have been claimed or found to be
// infeasible since.
func isCalled(before, after *layout.Row) bool {
	if before != nil || !after.Spec.Bundle || after.InLine() {
		return false
	}
	s := after.State()
	return s == layout.Ready || s == layout.Claimed || s == layout.Failed && after.Exception.Kind == layout.KindInfeasible
}

// gatherAll returns what a worker has claimed with all members of its bundles.
func (m *Machine) gatherAll(ctx context.Context, w *fdbmodel.Registration, claimed []fdbmodel.ClaimedFuture,
) []fdbmodel.ClaimedFuture {
	all := claimed
	for i := range claimed {
		if claimed[i].Spec.Bundle {
			got, err := w.Gather(ctx, &claimed[i], layout.MaxMembers)
			m.require(err)
			all = append(all, got.Members...)
		}
	}
	return all
}
