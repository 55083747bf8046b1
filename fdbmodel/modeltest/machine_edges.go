package modeltest

import (
	"context"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// inputs chooses some futures, among them earlier ones of the same call.
func (m *Machine) inputs(earlier []fdbmodel.Submission) []layout.ID {
	var ids []layout.ID
	for range m.random.IntN(4) {
		if n := len(earlier); n > 0 && m.random.IntN(2) == 0 && !earlier[n-1].ID.IsZero() {
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
// any operation may settle that ends one of them.
func (m *Machine) isSettled(before, after *layout.Row, now map[layout.ID]*layout.Row) bool {
	if before == nil || after == nil || before.State() != layout.Blocked {
		return false
	}
	switch after.State() {
	case layout.Blocked:
		return after.Blocked.Linked > before.Blocked.Linked && after.Attempts == before.Attempts
	case layout.Ready, layout.Delayed:
		waits := before.Attempts
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

// verifyInputs requires that what may run has all that it takes.
func (m *Machine) verifyInputs(now map[layout.ID]*layout.Row) {
	for id, row := range now {
		if s := row.State(); s == layout.Blocked || s.Terminal() {
			continue
		}
		for _, input := range layout.UnpackIDs(row.Spec.Inputs) {
			if from := now[input]; from == nil || from.State() != layout.Realized {
				m.fail("future %s is %v, and its input %s is %s", id, row.State(), input, digest(from))
			}
		}
	}
}

func (m *Machine) settle(ctx context.Context) (change, error) {
	n, more, err := m.C.SettleEdges(ctx)
	m.logf("settle: %d %t %v", n, more, err)
	return none, err
}
