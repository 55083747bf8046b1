package workers

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
)

// manual is what Step keeps between its calls.
type manual struct {
	beatAt time.Time
	taken  []*job // have a slot, and wait for their turn
}

// vanishedStep is when the next step of a vanished worker is due: never.
const vanishedStep = 24 * time.Hour

// Step runs a worker with Options.Manual in the caller: what is due of its
// heartbeat and its janitor, the end of what an earlier step ran, the functions
// that an earlier step claimed, and one claim. So between two steps it holds
// what a process that dies would hold. It returns when the next step is due at
// the latest. A worker that was declared dead becomes a member anew. An error is
// the store's or ctx's; the caller may step again. A timeout passes when the
// cluster's clock is moved, also while a function runs.
func (w *Worker) Step(ctx context.Context, now time.Time) (time.Time, error) {
	if w.vanished() {
		return now.Add(vanishedStep), nil
	}
	if !w.options.Manual {
		return now, errors.New("workers: Step is for workers with Options.Manual")
	}
	w.mu.Lock()
	l := w.life
	w.started = true
	w.mu.Unlock()
	if l == nil {
		var err error
		if l, err = w.join(ctx); err != nil {
			return now.Add(w.options.Poll), err
		}
		w.manual.beatAt = now.Add(w.cluster.Config().Heartbeat)
	}
	next, err := w.stepLife(ctx, l, now)
	if errors.Is(err, fdbmodel.ErrReaped) {
		w.abandon((*job).drop)
		l.stop()
		w.mu.Lock()
		w.life = nil
		w.mu.Unlock()
		return now, nil
	}
	return next, err
}

func (w *Worker) stepLife(ctx context.Context, l *life, now time.Time) (time.Time, error) {
	if !now.Before(w.manual.beatAt) {
		if err := l.beat(ctx); err != nil {
			return now, err
		}
		w.manual.beatAt = now.Add(w.cluster.Config().Heartbeat)
	}
	for more := true; more; {
		select {
		case id := <-l.reg.Cancels():
			l.cancel(id)
		default:
			more = false
		}
	}
	next := l.janitor.step(ctx, now)
	for _, t := range []time.Time{w.manual.beatAt, now.Add(w.options.Poll)} {
		if t.Before(next) {
			next = t
		}
	}
	if err := l.flush(ctx); err != nil {
		return now, err
	}
	if due, ran := w.runTaken(now); ran || due.Before(next) {
		next = due
	}
	if request, ok := l.request(); ok {
		n, err := l.claimNow(ctx, request)
		if err != nil {
			return now, err
		}
		if n > 0 {
			next = now
		}
	}
	return next, nil
}

// runTaken runs what has a slot and whose turn has come, or which is no longer
// wanted. It returns when the next is due, and whether anything ran.
func (w *Worker) runTaken(now time.Time) (next time.Time, ran bool) {
	m := &w.manual
	for {
		for j := w.slots.tryTake(); j != nil; j = w.slots.tryTake() {
			w.paces.reserve(j)
			m.taken = append(m.taken, j)
		}
		reached := w.cluster.Now() // functions move the clock
		at := slices.IndexFunc(m.taken, func(j *job) bool { return !reached.Before(j.due) || j.ctx.Err() != nil })
		if at < 0 {
			break
		}
		// A function may step the worker itself.
		j := m.taken[at]
		m.taken = slices.Delete(m.taken, at, at+1)
		w.runJob(j)
		ran = true
	}
	if ran {
		return now, true
	}
	next = now.Add(vanishedStep)
	for _, j := range m.taken {
		if j.due.Before(next) {
			next = j.due
		}
	}
	return next, false
}

// abandon ends everything that has not begun to run.
func (w *Worker) abandon(end func(*job) bool) {
	for _, j := range w.slots.unqueue(func(*job) bool { return true }) {
		end(j)
	}
	for _, j := range w.manual.taken {
		end(j)
		w.leaveSlot(j)
	}
	w.manual.taken = nil
}

// Leave ends the membership of a worker with Options.Manual: what has ended is
// written and what has not run is given back. The next Step becomes a member
// anew. It returns the store's or ctx's error.
func (w *Worker) Leave(ctx context.Context) error {
	w.mu.Lock()
	l := w.life
	w.life = nil
	w.mu.Unlock()
	if l == nil || w.vanished() {
		return nil
	}
	w.abandon((*job).relinquish)
	defer l.stop()
	if err := l.flush(ctx); err != nil {
		return err
	}
	if err := w.cluster.DropJanitor(ctx, l.reg.ID()); err != nil {
		return err
	}
	return l.reg.Leave(ctx)
}
