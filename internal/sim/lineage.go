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

// noteObject keeps what a transaction says about results that are objects, and
// checks that it is so.
func (t *tx) noteObject(m *mutation) {
	w := t.process.world
	var problem error
	switch {
	case t.tag == tagLose && m.is(clearKey, layout.StateResult):
		problem = t.noteLoss(m.key.ID)
	case m.is(stampKey, layout.KeyCopy):
		problem = t.noteCopy(m)
	case t.tag == tagFinish && m.is(setKey, layout.PlaceBlocked):
		w.report.Blocks++
	case t.tag == tagFinish && m.is(setKey, layout.StateException):
		problem = t.noteFailure(m)
	case t.tag == tagUnschedulable && m.is(setKey, layout.StateException):
		problem = t.noteInfeasible(m.key.ID)
	}
	if problem != nil {
		w.broken = append(w.broken, problem)
	}
}

// noteCopy requires that a copy that is recorded is there: its worker is a member
// and has it, unless it was damaged.
func (t *tx) noteCopy(m *mutation) error {
	w := t.process.world
	var record layout.CopyRecord
	if err := layout.Decode(m.key.Raw, m.value, &record); err != nil {
		return err
	}
	held := heldObject{record.Worker, record.Object}
	w.objects.recorded = append(w.objects.recorded, held)
	w.objects.futures[record.Object] = m.key.ID
	w.objects.holders[heldResult{record.Worker, m.key.ID}] = true
	t.holders = append(t.holders, record.Worker)
	alive, err := t.Tx.Snapshot().Get(t.keys().Worker(record.Worker, layout.WorkerAlive)).Wait(context.Background())
	switch p := w.workerOf(record.Worker); {
	case err != nil:
		return ignoreRetryable(err)
	case alive == nil:
		return fmt.Errorf("future %s has a copy of its result with worker %s, which is no member", m.key.ID, record.Worker)
	case p != nil && !w.objects.dropped[held] && !p.has(record.Object, record.Size):
		return fmt.Errorf("future %s has a copy of its result with worker %s, which does not have it", m.key.ID,
			record.Worker)
	}
	return nil
}

// checkHolders requires that who has got a copy, of what no run of its own has made, was
// a member then that did not stop.
func (t *tx) checkHolders() {
	w := t.process.world
	defer w.calm()()
	err := w.reader.View(context.Background(), func(tx kv.Attempt) error {
		for _, worker := range t.holders {
			key := t.keys().Worker(worker, layout.WorkerAlive)
			value, err := tx.Snapshot().Get(key).Wait(context.Background())
			var info layout.WorkerInfo
			switch {
			case err != nil:
				return err
			case value == nil || layout.Decode(key, value, &info) != nil || info.Leaving:
				return fmt.Errorf("worker %s got a copy (%s), and is no member any more, or stops", worker, t.tag)
			}
		}
		return nil
	})
	if err != nil {
		w.broken = append(w.broken, err)
	}
}

func (p *workerProcess) has(object string, size int64) bool {
	_, found := p.seam.ReadObject(object, size)
	return found
}

// noteLoss requires that a result that is removed as lost is lost: no member has a
// copy, unless that was damaged.
func (t *tx) noteLoss(id layout.ID) error {
	w := t.process.world
	defer w.calm()()
	ctx := context.Background()
	row, err := w.reader.Get(ctx, id)
	if err != nil || row.Result == nil {
		return nil // it conflicts with what has changed it
	}
	w.report.Losses++
	if w.objects.losses[id] == nil {
		w.objects.losses[id] = map[layout.Token]bool{}
	}
	w.objects.losses[id][row.Result.Token] = true
	copies, err := results.Of(w.reader).Copies(ctx, id)
	if err != nil {
		return err
	}
	for i := range copies {
		held := heldObject{copies[i].Worker, row.Result.Object}
		p := w.workerOf(held.worker)
		if copies[i].Alive && p != nil && !w.objects.dropped[held] && p.has(held.object, row.Result.Size) {
			return fmt.Errorf("the result of future %s is removed as lost, and worker %s has it", id, held.worker)
		}
	}
	return nil
}

// checkGone requires that a result that was said to be lost is no result any more,
// unless a worker has said since that it has it.
func (w *world) checkGone(ctx context.Context, r *request, token layout.Token) error {
	defer w.calm()()
	id := r.submission.ID
	row, err := w.reader.Get(ctx, id)
	if errors.Is(err, fdbmodel.ErrNotFound) || err == nil && (row.Result == nil || row.Result.Token != token) {
		return nil
	}
	copies, copiesErr := results.Of(w.reader).Copies(ctx, id)
	err = errors.Join(err, copiesErr)
	if err != nil || slices.ContainsFunc(copies, func(held results.Copy) bool { return held.Alive }) {
		return err
	}
	return fmt.Errorf("the result of future %s was said to be lost, and the future is still %v", id, row.State())
}

// declareDead has somebody take a worker for dead that is alive.
func (w *world) declareDead(ctx context.Context) error {
	defer w.calm()()
	p := w.workers[w.random.IntN(len(w.workers))]
	members, err := w.reader.Workers(ctx)
	if err != nil || p.process.dead {
		return err
	}
	for i := range members {
		if m := &members[i]; m.ID == p.worker.ID() {
			w.report.Declared++
			w.options.Log("%v worker %s is declared dead", w.clock.Now().Sub(epoch), m.ID)
			_, err = w.reader.DeclareDead(ctx, m.ID, m.Beat)
		}
	}
	return err
}

// noteFloors keeps which results the inputs of a future have when a claim of it
// begins: a run that takes an earlier one takes what is no result any more.
func (w *world) noteFloors(key runKey) {
	r := w.client.byID[key.id]
	if r == nil || len(r.refers) == 0 {
		return
	}
	defer w.calm()()
	rows, err := w.reader.GetMany(context.Background(), r.refers)
	if err != nil {
		w.broken = append(w.broken, err)
		return
	}
	floors := map[layout.ID]int{}
	for i := range rows {
		if rows[i].State() == layout.Realized && rows[i].Spec.AsObject {
			floors[rows[i].ID] = w.objects.runs[runKey{rows[i].ID, rows[i].Result.Token}]
		}
	}
	w.objects.floors[key] = floors
}

// ignoreRetryable is nil for what a transaction is repeated after.
func ignoreRetryable(err error) error {
	if kv.Retryable(err) {
		return nil
	}
	return err
}

// checkLineage compares what a future counts of its rebuilds with its results, and
// with what was lost of them.
func (w *world) checkLineage(r *request, row *layout.Row) error {
	if r.isPut() {
		if err := r.checkPut(row); err != nil {
			return err
		}
	}
	o, id, n := &w.objects, row.ID, row.Attempts.Rebuilt
	if row.State() == layout.Realized {
		o.saw(id, row.Result.Token)
	}
	if r.retried > 0 {
		return nil // it began to count again
	}
	before := o.rebuilt[id]
	if o.rebuilt[id] = n; n > before {
		w.report.Rebuilds += n - before
	}
	switch {
	case n < before:
		return fmt.Errorf("future %s counted %d rebuilds, and now %d", id, before, n)
	case n > 0 && !(row.Spec.AsObject && row.Spec.AllowReconstruction):
		return fmt.Errorf("future %s was rebuilt, and may not be", id)
	case n > fdbmodel.MaxRebuilds:
		return fmt.Errorf("future %s was rebuilt %d times", id, n)
	case n > len(o.losses[id]):
		return fmt.Errorf("future %s counts %d rebuilds, and %d of its results were lost", id, n, len(o.losses[id]))
	case len(o.results[id]) > 1+n:
		return fmt.Errorf("future %s had %d results with %d rebuilds", id, len(o.results[id]), n)
	}
	return nil
}

// beginAgain is called for a future that is submitted and did not exist: one that did
// before, whose submit had an unknown result, has ended and was removed.
func (o *objectLog) beginAgain(id layout.ID) {
	delete(o.results, id)
	delete(o.losses, id)
	delete(o.rebuilt, id)
}

// lastLost returns the run whose result was the last one that a future lost, 0 if it
// lost none, or if that is not known. Behind it the future has all its attempts again.
func (w *world) lastLost(r *request, rebuilt int) (last int) {
	id := r.submission.ID
	if r.retried > 0 || rebuilt != len(w.objects.losses[id]) {
		return 0
	}
	for token := range w.objects.losses[id] {
		last = max(last, w.objects.runs[runKey{id, token}])
	}
	return last
}

// checkLost requires that a result that was lost for good could not be rebuilt.
func (w *world) checkLost(row *layout.Row, missing bool) error {
	w.report.LostForGood++
	switch {
	case !row.Spec.AsObject:
		return fmt.Errorf("future %s lost a result that is no object: %s", row.ID, row.Exception.Message)
	case row.Spec.AllowReconstruction && row.Attempts.Rebuilt < fdbmodel.MaxRebuilds && !missing:
		return fmt.Errorf("future %s could be rebuilt a %d. time: %s", row.ID, row.Attempts.Rebuilt+1, row.Exception.Message)
	}
	return nil
}
