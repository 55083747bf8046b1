package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
)

// reach returns the process of a worker that is asked for something over a
// connection, unless it does not answer.
func (w *world) reach(p *process, id layout.WorkerID) (*workerProcess, error) {
	holder := w.workerOf(id)
	switch {
	case p.dead:
		return nil, kv.ErrClosed
	case holder == nil, w.clock.Now().Before(holder.pausedUntil), !p.checks && !w.healing && w.random.IntN(80) == 0:
		w.report.Unreached++
		return nil, errNoAnswer
	}
	return holder, nil
}

// connect is how a worker that leaves reaches others.
func (p *workerProcess) connect() {
	p.seam.RoomOf = func(worker string) int64 {
		other, err := p.process.world.reach(p.process, layout.WorkerID(worker))
		if err != nil {
			return -1
		}
		free, _ := other.seam.Room()
		return free
	}
	p.seam.Give = func(ctx context.Context, worker string, id [16]byte, alone bool) error {
		w := p.process.world
		if w.bug != nil && w.bug.deaf {
			return nil
		}
		err := w.give(ctx, p.process, layout.WorkerID(worker), id, alone)
		if err == nil {
			w.report.HandedOver++
		}
		return err
	}
}

// give has a worker take a copy of a result for a process, which may be gone when that
// is done.
func (w *world) give(ctx context.Context, p *process, to layout.WorkerID, id layout.ID, alone bool) error {
	holder, err := w.reach(p, to)
	if err != nil {
		return err
	}
	err = holder.seam.Take(context.WithoutCancel(ctx), id, alone)
	if p.dead {
		return kv.ErrClosed
	}
	return err
}

// moveSome has a worker take a copy of a result that somebody has read, mostly, so
// that there are two, and now and then alone.
func (w *world) moveSome(ctx context.Context, r *request) {
	p := w.workers[w.random.IntN(len(w.workers))]
	if w.healing || w.random.IntN(3) == 0 || p.process.dead || w.clock.Now().Before(p.pausedUntil) {
		return
	}
	if err := w.move(context.WithoutCancel(ctx), r, p, w.random.IntN(4) == 0); err != nil {
		w.broken = append(w.broken, err)
	}
}

// move has a worker take a copy, and checks which there are then, if nothing else
// happened meanwhile.
func (w *world) move(ctx context.Context, r *request, to *workerProcess, alone bool) error {
	id, worker, steps := r.submission.ID, to.worker.ID(), w.report.Steps
	before, err := w.copiesOf(ctx, id)
	if err != nil || to.seam.Take(ctx, id, alone) != nil {
		return err
	}
	if alone {
		w.report.Transferred++
	} else {
		w.report.Cloned++
	}
	after, err := w.copiesOf(ctx, id)
	if err != nil || w.report.Steps > steps || after.object != before.object {
		return err
	}
	want := before.workers
	switch {
	case alone:
		want = []layout.WorkerID{worker}
	case !slices.Contains(want, worker):
		want = append(want, worker)
	}
	slices.Sort(want)
	served := w.served(&after)
	switch {
	case !slices.Equal(after.workers, want):
		return fmt.Errorf("future %s was moved to worker %s (alone: %t) from %v, and %v have it", id, worker, alone,
			before.workers, after.workers)
	case !slices.Contains(served, worker):
		return fmt.Errorf("future %s was moved to worker %s, which does not have it", id, worker)
	case !alone && len(served) < len(w.served(&before)):
		return fmt.Errorf("future %s was cloned, and %v serve it", id, served)
	}
	return nil
}

// copyList is who has the result of a future, as far as the store knows.
type copyList struct {
	object  string
	size    int64
	workers []layout.WorkerID
	alive   []layout.WorkerID // of them
}

func (w *world) copiesOf(ctx context.Context, id layout.ID) (list copyList, err error) {
	defer w.calm()()
	row, err := w.reader.Get(ctx, id)
	if errors.Is(err, fdbmodel.ErrNotFound) || err == nil && row.Object() == "" {
		return list, nil
	}
	if err != nil {
		return list, err
	}
	copies, err := results.Of(w.reader).Copies(ctx, id)
	list.object, list.size = row.Object(), row.Result.Size
	for i := range copies {
		list.workers = append(list.workers, copies[i].Worker)
		if copies[i].Alive {
			list.alive = append(list.alive, copies[i].Worker)
		}
	}
	slices.Sort(list.workers)
	return list, err
}

// served returns the members of a list that have what they should.
func (w *world) served(list *copyList) (served []layout.WorkerID) {
	for _, id := range list.alive {
		if p := w.workerOf(id); p != nil && p.has(list.object, list.size) {
			served = append(served, id)
		}
	}
	return served
}

// leaveAt has a worker stop as it should, and another one start.
func (w *world) leaveAt(ctx context.Context, at int) error {
	p := w.workers[at]
	if p.process.dead || p.leaving || w.clock.Now().Before(p.pausedUntil) {
		return nil
	}
	w.options.Log("%v worker %s leaves", w.clock.Now().Sub(epoch), p.worker.ID())
	if err := w.leave(ctx, p); err != nil {
		return err
	}
	if at = slices.Index(w.workers, p); at < 0 {
		return nil // it was killed meanwhile, or all were
	}
	w.workers = slices.Delete(w.workers, at, at+1)
	return w.startWorker(ctx, "")
}

// leave ends a worker as it should end.
func (w *world) leave(ctx context.Context, p *workerProcess) error {
	p.leaving = true
	w.report.Left++
	err := p.seam.Leave(ctx)
	w.report.Reaped += int(p.worker.Stats().Reaped)
	p.process.die()
	if err != nil && !tolerable(err) {
		return fmt.Errorf("worker %s leaves: %w", p.worker.ID(), err)
	}
	return nil
}

// roomToSpare is how much more room than the size of an object its holder needs at
// most.
const roomToSpare = 1024

// leaveCalmly ends a worker while there are no faults. Results that it alone had must
// be with others then, if one that answers has room: one that is paused does not.
func (w *world) leaveCalmly(ctx context.Context, p *workerProcess) error {
	id := p.worker.ID()
	sole := map[*request]copyList{}
	for _, r := range w.client.requests {
		if !r.submission.Spec.AsObject {
			continue
		}
		list, err := w.copiesOf(ctx, r.submission.ID)
		if err != nil {
			return err
		}
		if slices.Equal(list.alive, []layout.WorkerID{id}) && p.has(list.object, list.size) {
			sole[r] = list
		}
	}
	if err := w.leave(ctx, p); err != nil {
		return err
	}
	w.workers = slices.DeleteFunc(w.workers, func(other *workerProcess) bool { return other == p })
	for _, r := range w.client.requests {
		list, was := sole[r]
		if !was {
			continue
		}
		now, err := w.copiesOf(ctx, r.submission.ID)
		if err != nil {
			return err
		}
		if now.object == list.object && len(w.served(&now)) > 0 {
			continue
		}
		for _, other := range w.workers {
			free, _ := other.seam.Room()
			answers := !other.process.dead && !w.clock.Now().Before(other.pausedUntil)
			if answers && free >= list.size+roomToSpare {
				return fmt.Errorf("worker %s left with the only copy of the result of future %s, of %d bytes, and worker %s "+
					"has room for %d", id, r.submission.ID, list.size, other.worker.ID(), free)
			}
		}
	}
	return nil
}

// replaceCalmly has new workers take over from the old ones.
func (w *world) replaceCalmly(ctx context.Context, old []*workerProcess) error {
	for _, p := range w.workers {
		if _, err := p.step(ctx, w.clock.Now()); err != nil { // it becomes a member
			return err
		}
	}
	w.workers = append(w.workers, old...)
	for _, p := range old {
		p.process.dieIn, p.process.stopIn = 0, 0 // that was to be before
	}
	for _, p := range old {
		if p.process.dead {
			w.workers = slices.DeleteFunc(w.workers, func(other *workerProcess) bool { return other == p })
			continue
		}
		p.pausedUntil = w.clock.Now()
		if err := w.leaveCalmly(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// close ends all workers but one, which has what the others had.
func (w *world) close(ctx context.Context) error {
	for len(w.workers) > 1 {
		if err := w.leaveCalmly(ctx, w.workers[0]); err != nil {
			return err
		}
	}
	return nil
}

// checkStored requires that what is left in the object store of a worker is what it has
// copies of, once nothing runs any more.
func (w *world) checkStored(ctx context.Context) error {
	for _, p := range w.workers {
		id, objects := p.worker.ID(), map[string]int64{}
		for _, r := range w.client.requests {
			list, err := w.copiesOf(ctx, r.submission.ID)
			if err != nil {
				return err
			}
			if slices.Contains(list.workers, id) {
				objects[list.object] = list.size
			}
		}
		most := int64(0)
		for _, size := range objects {
			most += size + roomToSpare
		}
		if _, used := p.seam.Room(); used > most {
			return fmt.Errorf("worker %s has copies of %d results, and its object store holds %d bytes", id, len(objects), used)
		}
	}
	return nil
}
