package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// errInterrupted is the end of a function whose process is gone, or of which
// nobody will hear.
var errInterrupted = errors.New("the function was interrupted")

// parent submits other futures, the same ones in each run, and awaits their ends.
// The cluster goes on meanwhile, below it on the stack: so what begins last ends
// first, and a parent may be told late that its wait is over.
func (w *world) parent(ctx context.Context, p *workerProcess, args []byte) ([]byte, error) {
	children := w.children(args)
	var missing []fdbmodel.Submission
	for _, r := range children {
		if !r.acknowledged && r.open() {
			r.submission.Spec.Session = w.client.session
			missing = append(missing, r.submission)
		}
	}
	if _, err := w.client.cluster.Submit(ctx, missing); err != nil {
		return nil, err
	}
	for _, r := range children {
		r.acknowledged = !r.abandoned
	}
	defer layout.NoteAwait(ctx)()
	if p.worker.Stats().Free.Slots == 0 {
		w.broken = append(w.broken, fmt.Errorf("a function that awaits others has kept its slot: %s", args))
	}
	for {
		open := slices.ContainsFunc(children, func(r *request) bool { return r.open() })
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !slices.Contains(w.workers, p) || !w.clock.Now().Before(w.until):
			return nil, errInterrupted
		case !open && !w.clock.Now().Before(p.pausedUntil):
			w.report.Awaited++
			return outcomeOf(args), nil
		}
		if err := w.round(context.WithoutCancel(ctx)); err != nil {
			w.broken = append(w.broken, err)
			return nil, err
		}
	}
}

// children returns what a parent awaits. The client awaits it as well.
func (w *world) children(of []byte) []*request {
	of, _, _ = bytes.Cut(of, []byte{0})
	var all []*request
	for n := range 2 {
		args := fmt.Appendf(nil, "%s/%d", of, n)
		id := layout.KeyedID(w.client.cluster.Name(), string(args))
		r := w.client.byID[id]
		if r == nil {
			r = &request{submission: w.client.draw(w.clock.Now())}
			s := &r.submission
			s.ID, s.Key, s.Args, s.Inputs = id, string(args), args, nil
			if n > 0 && w.random.IntN(2) == 0 {
				s.Inputs = []layout.ID{all[n-1].submission.ID}
			}
			if bytes.Count(args, []byte("/")) >= maxDepth && s.Spec.Function == "go:"+fnParent {
				s.Spec.Function = "go:" + fnUpper
			}
			w.client.requests = append(w.client.requests, r)
			w.client.byID[id] = r
			w.report.Submitted++
		}
		all = append(all, r)
	}
	return all
}
