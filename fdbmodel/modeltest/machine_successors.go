package modeltest

import (
	"context"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// hold has a worker hold what it has claimed, and returns which futures that are.
func (m *Machine) hold(w *actorWorker, request *fdbmodel.ClaimRequest, futures []fdbmodel.ClaimedFuture,
) map[layout.ID]bool {
	m.verifyClaimed(futures)
	took, objects := map[layout.ID]bool{}, 0
	for i := range futures {
		f := &futures[i]
		if f.Err != nil {
			m.fail("claimed future can't be read: %v", f.Err)
		}
		if len(f.Spec.Requirements.Labels) > 0 && !hasLabel(w.Info()) {
			m.fail("worker %s has claimed a future whose labels it lacks", w.ID())
		}
		if f.Spec.AsObject {
			objects++
		}
		if request.Objects != nil && objects > *request.Objects {
			m.fail("worker %s has claimed more futures with objects than %d", w.ID(), *request.Objects)
		}
		if has := len(m.steps.recorded[f.ID]) > 0; f.Steps != has && len(m.loose) == 0 && len(m.steps.perhaps[f.ID]) == 0 {
			m.fail("claimed future %s says that it has steps: %t, and has some: %t", f.ID, f.Steps, has)
		}
		took[f.ID] = true
		w.held = append(w.held, f)
	}
	return took
}

// finishAll ends claims of a worker, which sometimes goes on with the next ones in their lanes.
func (m *Machine) finishAll(ctx context.Context, w *actorWorker, done []fdbmodel.Completion,
) ([]fdbmodel.Outcome, map[layout.ID]bool, error) {
	if m.random.IntN(2) == 0 {
		outcomes, err := w.Finish(ctx, done)
		return outcomes, nil, err
	}
	request := fdbmodel.ClaimRequest{Max: 1 + m.random.IntN(2)}
	if most := m.random.IntN(4); most < 2 {
		request.Objects = &most
	}
	outcomes, claimed, err := w.EndAndClaim(ctx, done, request)
	m.C.ResolveMarked(ctx)
	w.doubt = w.doubt || wasCut(ctx, err)
	m.logf("%d successors of %d by %s (gone %t): %v", len(claimed), len(done), w.ID(), w.gone, err)
	if w.gone && len(claimed) > 0 {
		m.fail("a dead worker has claimed successors")
	}
	return outcomes, m.hold(w, &request, claimed), err
}

// succeeds reports whether a change is that of a worker that has gone on with a future of a lane.
func (m *Machine) succeeds(w *actorWorker, took map[layout.ID]bool, before, after *layout.Row) bool {
	return before != nil && before.State() == layout.Ready && before.Line != nil && after.State() == layout.Claimed &&
		after.Claim.Worker == w.ID() && (took[after.ID] || w.doubt) && before.Attempts == (layout.Attempts{})
}
