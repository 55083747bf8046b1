package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/workers"
)

// drawNear draws one of the inputs of a future that it is to run near, or nowhere else.
func (c *clientProcess) drawNear(s *fdbmodel.Submission) {
	w := c.world
	if len(s.Inputs) == 0 || w.random.IntN(2) == 0 {
		return
	}
	near := s.Inputs[w.random.IntN(len(s.Inputs))]
	for _, id := range s.Inputs {
		if c.byID[id].submission.Spec.AsObject && w.random.IntN(2) == 0 {
			near = id
		}
	}
	s.Spec.Near, s.Spec.MustBeNear = near, w.random.IntN(3) > 0
	if s.Spec.MustBeNear && w.random.IntN(3) == 0 {
		s.Spec.Requirements.Labels = map[string]string{"zone": w.zone()}
	}
}

// checkNear requires that what must be near a result that is an object runs on a worker
// that has it, or had it when this run was claimed.
func (w *world) checkNear(ctx context.Context, p *workerProcess) {
	info, _ := workers.InfoFrom(ctx)
	spec := &w.client.byID[info.ID].submission.Spec
	if spec.Near.IsZero() {
		return
	}
	held := w.objects.holders[heldResult{info.Worker, spec.Near}]
	if !spec.MustBeNear {
		if held {
			w.report.Near++
		}
		return
	}
	defer w.calm()()
	row, err := w.reader.Get(context.WithoutCancel(ctx), spec.Near)
	switch {
	case errors.Is(err, fdbmodel.ErrNotFound): // a run whose claim is gone
	case err != nil:
		w.broken = append(w.broken, err)
	case held:
		w.report.Bound++
	case row.State() == layout.Realized && row.Object() == "": // it runs anywhere
	default:
		w.broken = append(w.broken, fmt.Errorf("future %s runs on worker %s, and must be near %s, which that never had",
			info.ID, info.Worker, spec.Near))
	}
}

// longOverlooked is how long a worker may have what a future must be near, and be able
// to run it, without that being seen.
const longOverlooked = 10 * time.Second

// noteInfeasible requires of a future that must be near an object, and that ends because
// no worker that has it could run it, that none can.
func (t *tx) noteInfeasible(id layout.ID) error {
	w := t.process.world
	r := w.client.byID[id]
	if r == nil || !r.submission.Spec.MustBeNear {
		return nil
	}
	defer w.calm()()
	near := r.submission.Spec.Near
	list, err := w.copiesOf(context.Background(), near)
	if err != nil {
		return err
	}
	records, err := results.Of(w.reader).CopyRecords(context.Background(), []layout.ID{near})
	if err != nil {
		return err
	}
	w.report.Unplaceable++
	for _, record := range records[near] {
		p := w.workerOf(record.Worker)
		since := w.clock.Now().Sub(time.UnixMilli(record.At))
		if p != nil && slices.Contains(list.alive, record.Worker) && since > longOverlooked && p.canRun(&r.submission.Spec) {
			return fmt.Errorf("future %s ends as infeasible, and worker %s has %s, which it must be near, for %v", id,
				record.Worker, near, since)
		}
	}
	return nil
}

// canRun reports whether a worker knows the function of a future and has what that
// requires.
func (p *workerProcess) canRun(s *layout.Spec) bool {
	zone := s.Requirements.Labels["zone"]
	return (zone == "" || zone == p.zone) && s.Requirements.CPU != tooMuch && (s.Function != "go:"+fnUnknown || p.knowsAll)
}

// reassignSome requires that who must be near an object can't be sent elsewhere.
func (c *clientProcess) reassignSome(ctx context.Context, r *request) error {
	w := c.world
	if !r.submission.Spec.MustBeNear || r.ended != nil {
		return nil
	}
	row, err := c.cluster.Get(ctx, r.submission.ID)
	if err != nil || row.Attempts.Assigned == "" {
		return ignoreMissing(err)
	}
	to := w.workers[w.random.IntN(len(w.workers))].worker.ID()
	if to == "" || to == row.Attempts.Assigned {
		return nil
	}
	move := fdbmodel.Assignment{From: row.Attempts.Assigned, To: to, Reason: "simulated"}
	outcomes, err := c.cluster.Assign(ctx, move, []layout.ID{row.ID})
	switch {
	case errors.Is(err, fdbmodel.ErrReaped), errors.Is(err, fdbmodel.ErrNotFound), errors.Is(err, layout.ErrUnfit):
		return nil
	case err == nil && outcomes[0] != fdbmodel.Refused && outcomes[0] != fdbmodel.Already:
		return fmt.Errorf("future %s must be near an object and is reassigned: %v", row.ID, outcomes[0])
	}
	return err
}
