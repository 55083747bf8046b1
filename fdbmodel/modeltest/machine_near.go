package modeltest

import (
	"context"
	"errors"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
)

// approach has some futures be near an input.
func (m *Machine) approach(s *fdbmodel.Submission) {
	if len(s.Inputs) > 0 && m.random.IntN(2) == 0 {
		s.Spec.Near, s.Spec.MustBeNear = s.Inputs[m.random.IntN(len(s.Inputs))], m.random.IntN(3) > 0
	}
}

// isNear reports whether a future that must be near an object waits for another place
// or another worker, which any operation may bring about.
func isNear(before, after *layout.Row) bool {
	if before == nil || after == nil || !before.Spec.MustBeNear || before.State().Terminal() {
		return false
	}
	b, a := &before.Attempts, &after.Attempts
	if a.Failed < b.Failed || a.Failed > b.Failed+1 || a.Crashes < b.Crashes || a.Rebuilt != b.Rebuilt {
		return false
	}
	switch after.State() {
	case layout.Ready, layout.Blocked, layout.Delayed:
		return true
	case layout.Failed:
		return after.Exception.Kind == layout.KindUpstream
	}
	return false
}

// isLost reports whether the result of a future was lost, which a resolution reports
// of what another future must be near.
func (m *Machine) isLost(before, after *layout.Row) bool {
	if before == nil || after == nil || before.Object() == "" || m.awaits(before) {
		return false
	}
	if after.State() == layout.Failed && after.Exception.Kind == layout.KindLost {
		return !before.Spec.AllowReconstruction || before.Attempts.Rebuilt == fdbmodel.MaxRebuilds
	}
	return before.Spec.AllowReconstruction && after.Attempts.Rebuilt == before.Attempts.Rebuilt+1 &&
		after.Attempts.Failed == 0 && (after.State() == layout.Ready || after.Spec.HasInputs() &&
		(after.State() == layout.Blocked || m.isUpstream(after)))
}

// isNeeded reports whether a future must be near the result of another one.
func isNeeded(rows map[layout.ID]*layout.Row, id layout.ID) bool {
	for _, row := range rows {
		if row.Spec.MustBeNear && row.Spec.Near == id {
			return true
		}
	}
	return false
}

// waitsForUnplaceable reports whether a future waits for an input that no holder of an object
// could run, or for one that does.
func (m *Machine) waitsForUnplaceable(r *layout.Row) bool {
	if r.State() != layout.Blocked {
		return false
	}
	for part := range slices.Chunk(r.Spec.Inputs, len(layout.ID{})) {
		input := m.Rows[layout.ID(part)]
		if input != nil && (input.Attempts.Unplaceable || m.waitsForUnplaceable(input)) {
			return true
		}
	}
	return false
}

// placesUnplaceable reports whether a future must be near the result of another one and no holder could
// run it.
func (m *Machine) placesUnplaceable(id layout.ID) bool {
	_, found := m.any(func(r *layout.Row) bool { return r.Attempts.Unplaceable && r.Spec.Near == id })
	return found
}

// replace looks for workers again for what no holder of an object could run.
func (m *Machine) replace(ctx context.Context) (change, error) {
	var err error
	for next := m.Clock.Now(); err == nil && !next.IsZero(); {
		var n int
		n, next, err = results.Of(m.C).ReplaceUnplaceable(ctx, &m.unplaceable)
		m.logf("replace: %d, goes on %t: %v", n, !next.IsZero(), err)
	}
	return func(before, after *layout.Row) bool {
		return before != nil && before.Attempts.Unplaceable && after != nil && after.State() == layout.Blocked
	}, err
}

// reassign moves a future from a worker to another one.
func (m *Machine) reassign(ctx context.Context) (change, error) {
	from, to := m.worker(false), m.worker(false)
	if from == nil || to == nil {
		return none, nil
	}
	id := m.some()
	for other, row := range m.Rows {
		if row.State() == layout.Ready && row.Attempts.Assigned == from.ID() && (m.Rows[id] == nil ||
			m.Rows[id].Attempts.Assigned != from.ID() || other.String() < id.String()) {
			id = other
		}
	}
	outcomes, err := m.C.Assign(ctx, fdbmodel.Assignment{From: from.ID(), To: to.ID(), Reason: "y"}, []layout.ID{id})
	m.logf("reassign %s from %s to %s (gone %t): %v %v", id, from.ID(), to.ID(), to.gone, outcomes, err)
	if to.gone && err == nil {
		m.fail("something was assigned to a dead worker")
	}
	if errors.Is(err, layout.ErrUnfit) || errors.Is(err, fdbmodel.ErrNotFound) && to.gone {
		err = nil
	}
	return func(before, after *layout.Row) bool {
		if before == nil || after == nil || after.State() != layout.Ready || after.ID != id ||
			before.Attempts.Assigned != from.ID() || before.Spec.MustBeNear {
			return false
		}
		given := before.Attempts
		given.Assigned, given.Reason = to.ID(), "y"
		return given == after.Attempts
	}, err
}

// takesObjects reports whether results of inputs of a future are, or were, to be
// objects.
func (m *Machine) takesObjects(r *layout.Row) bool {
	for _, id := range layout.UnpackIDs(r.Spec.Inputs) {
		if input := m.Rows[id]; input == nil || input.Spec.AsObject {
			return true
		}
	}
	return false
}

// placed is what a new future counts, wherever it is best to run.
func placed(r *layout.Row) layout.Attempts {
	a := r.Attempts
	return layout.Attempts{Due: a.Due, Near: a.Near, NearWait: a.NearWait, Assigned: a.Assigned,
		Unplaceable: a.Unplaceable}
}
