package sim

import (
	"context"
	"errors"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
)

// errNoAnswer is what a reader of an object gets from a process that is gone, or
// that is stopped, or that it can't reach.
var errNoAnswer = errors.New("no answer")

// OpenObject implements results.ObjectReader: it asks the worker of the copy, which
// may not answer.
func (p *process) OpenObject(_ context.Context, object string, size int64, from *results.Copy,
) (results.OpenObject, error) {
	o := openObject{process: p, worker: from.Worker, object: object, size: size}
	_, err := o.value()
	return o, err
}

// openObject is an object of one worker.
type openObject struct {
	process *process
	worker  layout.WorkerID
	object  string
	size    int64
}

// ReadAt implements results.OpenObject.
func (o openObject) ReadAt(_ context.Context, p []byte, offset int64) error {
	value, err := o.value()
	if err == nil && copy(p, value[min(offset, int64(len(value))):]) < len(p) {
		err = fdbmodel.ErrNotFound // another one, shorter
	}
	return err
}

// Close implements results.OpenObject.
func (openObject) Close() {}

// value is what the worker answers now.
func (o openObject) value() ([]byte, error) {
	p, w := o.process, o.process.world
	holder, err := w.reach(p, o.worker)
	if err != nil {
		return nil, err
	}
	if id := w.objects.futures[o.object]; w.bug != nil && w.bug.stale && len(w.objects.tokens[id]) > 1 {
		r := w.client.byID[id]
		return r.encoded(r.content(1)), nil
	}
	value, found := holder.seam.ReadObject(o.object, o.size)
	if !found {
		return nil, fdbmodel.ErrNotFound
	}
	return value, nil
}

// workerOf returns the live process of a member, nil for none.
func (w *world) workerOf(id layout.WorkerID) *workerProcess {
	for _, p := range w.workers {
		if !p.process.dead && p.worker.ID() == id {
			return p
		}
	}
	return nil
}

// dropObject makes a worker lose an object.
func (w *world) dropObject() {
	o := &w.objects
	if len(o.recorded) == 0 {
		return
	}
	held := o.recorded[w.random.IntN(len(o.recorded))]
	if p := w.workerOf(held.worker); p != nil && p.seam.DropObject(held.object) {
		o.dropped[held] = true
		w.report.Dropped++
		w.options.Log("%v worker %s loses an object", w.clock.Now().Sub(epoch), held.worker)
	}
}
