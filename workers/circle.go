package workers

import (
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/circles"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// lookForCircles looks, beside what the worker does, whether functions that have waited for long wait for
// each other: those that the heartbeat has named, once their wait is as old as the dead-after time, and then each
// time that it is twice as old.
func (m *membership) lookForCircles(told []layout.Await) {
	if len(told) == 0 || m.worker.manual() || !m.circling.CompareAndSwap(false, true) {
		return
	}
	due := m.worker.slots.longWaits(m, told, m.worker.cluster.Config().DeadAfter)
	if len(due) == 0 {
		m.circling.Store(false)
		return
	}
	m.others.start(func() {
		defer m.circling.Store(false)
		if err := m.refuseCircles(m.store, due); err != nil && m.store.Err() == nil {
			m.worker.options.Logger.Warn("could not look for functions that wait for each other", "error", err)
		}
	})
}

// longWaits returns those of some waits for futures at which it is time to look, by the id of the function's future.
func (s *slots) longWaits(m *membership, told []layout.Await, patience time.Duration) map[layout.ID]*wait {
	ids := make(map[layout.ID]bool, len(told))
	for i := range told {
		ids[told[i].ID] = told[i].Count == 1
	}
	now, due := s.clock.Now(), map[layout.ID]*wait{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for j := range s.running {
		if j.membership != m || !ids[j.future.ID] || len(j.waits) != 1 {
			continue
		}
		w := j.waits[0]
		if w.refuse == nil || w.what == nil || now.Sub(w.since) < patience || now.Before(w.lookAt) {
			continue
		}
		w.lookAt = now.Add(now.Sub(w.since))
		due[j.future.ID] = w
	}
	return due
}

// refuseCircles refuses waits that were in the same circle at the last look, and are the youngest of it.
func (m *membership) refuseCircles(ctx context.Context, due map[layout.ID]*wait) error {
	waits, err := circles.Read(ctx, m.worker.cluster)
	if err != nil {
		return err
	}
	slots := m.worker.slots
	for id, w := range due {
		circle, err := waits.Through(ctx, id)
		if err != nil {
			return err
		}
		lasts := circle != nil && circle.Lasts(w.circle)
		w.circle = circle
		switch {
		case circle == nil:
		case lasts && circle.Youngest() == id:
			w.refuse(fmt.Errorf("%w: %v. End one of them without that await: send what is to be done (Method.Send), or "+
				"submit it with Task.After", circles.ErrCircle, circle))
		default:
			slots.lookAgain(w, m.worker.cluster.Config().DeadAfter)
		}
	}
	return nil
}

// lookAgain has a wait looked at after a while.
func (s *slots) lookAgain(w *wait, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.lookAt = s.clock.Now().Add(after)
}
