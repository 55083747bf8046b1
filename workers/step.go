package workers

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/maintenance"
)

// manualSteps is what step keeps between its calls.
type manualSteps struct {
	beatAt  time.Time
	sweepAt time.Time // of objects
	taken   []*job    // have a slot, and wait for their turn
}

// vanishedStep is how far off the next step of a vanished worker is.
const vanishedStep = 24 * time.Hour

// step runs a manual worker in the caller; see seam.Worker.
func (w *Worker) step(ctx context.Context, now time.Time) (time.Time, error) {
	if w.vanished() {
		return now.Add(vanishedStep), nil
	}
	if !w.manual() {
		return now, errors.New("workers: Step is for manual workers")
	}
	w.mu.Lock()
	m := w.membership
	w.started = true
	w.mu.Unlock()
	if m == nil {
		var err error
		if m, err = w.join(ctx); err != nil {
			return now.Add(w.options.Poll), err
		}
		w.steps.beatAt, w.steps.sweepAt = now.Add(w.cluster.Config().Heartbeat), now.Add(sweepObjectsEvery)
	}
	next, err := w.stepMembership(ctx, m, now)
	if errors.Is(err, fdbmodel.ErrReaped) {
		w.abandon((*job).drop)
		m.dropRunning(err)
		if err := m.reg.Leave(ctx); err != nil {
			return now, err
		}
		m.end()
		return now, m.dropObjects()
	}
	return next, err
}

func (w *Worker) stepMembership(ctx context.Context, m *membership, now time.Time) (time.Time, error) {
	if m.closing.Load() {
		return w.stepLeaving(ctx, m, now)
	}
	if !now.Before(w.steps.beatAt) {
		if err := m.beat(ctx); err != nil {
			return now, err
		}
		w.steps.beatAt = now.Add(w.cluster.Config().Heartbeat)
	}
	if m.kept != nil && !now.Before(w.steps.sweepAt) {
		w.steps.sweepAt = now.Add(sweepObjectsEvery)
		if err := m.kept.sweep(ctx); err != nil {
			return now, err
		}
	}
	m.takeCancels()
	w.slots.losePatience()
	w.failures.pass(false)
	w.warnOfStall(now)
	next := now.Add(w.cluster.Config().Heartbeat)
	if m.janitor != nil {
		next = m.janitor.step(ctx, now)
	}
	for _, t := range []time.Time{w.steps.beatAt, now.Add(w.options.Poll)} {
		if t.Before(next) {
			next = t
		}
	}
	if err := m.flush(ctx); err != nil {
		return now, err
	}
	if due, ran := w.runTaken(now); ran || due.Before(next) {
		next = due
	}
	if !w.isCurrent(m) {
		return now, nil // a function stepped the worker, and it was declared dead
	}
	if request, ok := m.request(); ok {
		n, err := m.claimNow(ctx, request)
		if err != nil {
			return now, err
		}
		if n > 0 {
			next = now
		}
	}
	return next, nil
}

// stepLeaving is a step of a membership that is on its way out, which only beats. When it
// leaves, it finds out whether it was reaped.
func (w *Worker) stepLeaving(ctx context.Context, m *membership, now time.Time) (time.Time, error) {
	if now.Before(w.steps.beatAt) {
		return w.steps.beatAt, nil
	}
	w.steps.beatAt = now.Add(w.cluster.Config().Heartbeat)
	if err := m.beat(ctx); !errors.Is(err, fdbmodel.ErrReaped) {
		return w.steps.beatAt, err
	}
	return w.steps.beatAt, nil
}

// isCurrent reports whether m is the present membership.
func (w *Worker) isCurrent(m *membership) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.membership == m
}

// takeCancels asks what was cancelled to stop.
func (m *membership) takeCancels() {
	for {
		select {
		case id := <-m.reg.Cancels():
			m.cancel(id)
		default:
			return
		}
	}
}

// takeCancels is for a function that runs in a step; see seam.Worker.
func (w *Worker) takeCancels() {
	w.mu.Lock()
	m := w.membership
	w.mu.Unlock()
	if m != nil {
		m.takeCancels()
	}
}

// runTaken runs the jobs with a slot whose turn has come, or that are no longer
// wanted. It returns when the next is due, and whether anything ran.
func (w *Worker) runTaken(now time.Time) (next time.Time, ran bool) {
	m := &w.steps
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

// abandon ends every job that has not started.
func (w *Worker) abandon(end func(*job) bool) {
	for _, j := range w.slots.unqueue(func(*job) bool { return true }) {
		end(j)
	}
	for _, j := range w.steps.taken {
		end(j)
		w.leaveSlot(j)
	}
	w.steps.taken = nil
}

// leave ends the membership of a manual worker; see seam.Worker.
func (w *Worker) leave(ctx context.Context) error {
	w.mu.Lock()
	m := w.membership
	w.mu.Unlock()
	if m == nil || w.vanished() || !m.closing.CompareAndSwap(false, true) {
		return nil
	}
	defer w.stopReporting()
	defer w.clients.close(w, false, false)
	defer m.end()
	m.stopHolding()
	w.abandon((*job).relinquish)
	m.interrupt()
	if err := m.flush(ctx); err != nil {
		return err
	}
	m.handOver(w.cluster.Now().Add(w.options.DrainTimeout))
	if m.janitor != nil {
		if err := maintenance.Of(w.cluster).Release(ctx, m.reg.ID()); err != nil {
			return err
		}
	}
	return errors.Join(m.reg.Leave(ctx), m.dropObjects())
}

// end leaves the worker without a present membership, if m was it.
func (m *membership) end() {
	m.stop()
	m.worker.mu.Lock()
	defer m.worker.mu.Unlock()
	if m.worker.membership == m {
		m.worker.membership = nil
	}
}
