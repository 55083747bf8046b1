package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/taskcontext"
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
			w.lanes.ask(r.submission.ID)
		}
	}
	if w.client.pausedUntil.Equal(never) {
		return nil, errInterrupted // it may be stopped in a submit, whose turn this one would wait for
	}
	if _, err := w.client.cluster.Submit(ctx, missing); err != nil {
		return nil, err
	}
	for _, r := range children {
		r.acknowledged = !r.abandoned
		w.lanes.acknowledge(r.submission.ID)
	}
	defer taskcontext.NoteAwait(ctx, nil, nil)()
	if p.worker.Stats().Free.Slots == 0 {
		w.broken = append(w.broken, fmt.Errorf("a function that awaits others has kept its slot: %s", args))
	}
	for {
		open, err := w.readAll(ctx, p, children)
		if err != nil {
			return nil, err
		}
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

// readAll reads the results of children from their parent's worker, once all have
// ended. It reports whether the parent has to wait, again for those that were lost.
func (w *world) readAll(ctx context.Context, p *workerProcess, children []*request) (open bool, err error) {
	isOpen := func(r *request) bool { return r.open() }
	if slices.ContainsFunc(children, isOpen) {
		return true, nil
	}
	for _, r := range children {
		err := w.read(context.WithoutCancel(ctx), p.process, r)
		if err != nil && !tolerable(err) {
			w.broken = append(w.broken, err)
		}
		if err != nil {
			return false, err
		}
	}
	return slices.ContainsFunc(children, isOpen), nil
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
			s.Spec.Near, s.Spec.MustBeNear = layout.ID{}, false
			if n > 0 && w.random.IntN(2) == 0 && !r.isMember() {
				s.Inputs = []layout.ID{all[n-1].submission.ID}
			}
			if bytes.Count(args, []byte("/")) >= maxDepth && s.Spec.Function == "go:"+fnParent {
				s.Spec.Function = "go:" + fnUpper
			}
			if err := w.dress(r); err != nil {
				w.broken = append(w.broken, err)
			}
			w.client.requests = append(w.client.requests, r)
			w.client.byID[id] = r
			w.report.Submitted++
		}
		all = append(all, r)
	}
	return all
}
