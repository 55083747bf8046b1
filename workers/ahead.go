package workers

import (
	"time"

	"github.com/futura-run/futura/fdbmodel"
)

// Bounds of what is claimed ahead of the slots.
const (
	aheadTime = 20 * time.Millisecond // as much work as that
	aheadMax  = 2 * fdbmodel.MaxClaim
	// heldTime is how long what was claimed ahead waits while no slot becomes free:
	// others may be free to run it. It is looked at heldLooks times meanwhile, so that
	// a process that gets no processor time does not give back what it could run.
	heldTime  = 2 * aheadTime
	heldLooks = 4
)

// ahead is how many claimed futures may wait for a slot: as many as will have
// started within aheadTime. Long functions, and those of an unknown length, have
// none waiting for them: other workers may be free to run those. While all slots are
// taken, the time since one became free counts as well, in a pipeline only once it is
// longer. It is called under mu.
func (s *slots) ahead() int { return s.aheadUpTo(aheadMax) }

// aheadUpTo is ahead with another bound on their number.
func (s *slots) aheadUpTo(most int) int {
	if s.pace <= 0 || s.lean {
		return 0
	}
	n := int(aheadTime/s.pace) * (s.capacity.Slots - s.withheld)
	if s.open() <= 0 {
		quiet := s.clock.Now().Sub(s.turned)
		switch {
		case s.pipeline && quiet < aheadTime: // on their way back
		case quiet > 0:
			n = min(n, int(aheadTime/quiet))
		}
	}
	return min(n, most)
}

// watchHeld has what was claimed ahead looked at while it waits.
func (s *slots) watchHeld() {
	s.mu.Lock()
	if s.held == nil || s.watched || len(s.queue) == 0 || s.closed {
		s.mu.Unlock()
		return
	}
	s.watched = true
	due := s.clock.Now().Add(heldTime / heldLooks)
	s.mu.Unlock()
	s.clock.AfterFunc(due, func() { s.lookAtHeld(due) })
}

// lookAtHeld gives back what has waited for heldTime, all of it without a slot that
// became free. A look that comes late counts as none.
func (s *slots) lookAtHeld(due time.Time) {
	s.mu.Lock()
	now := s.clock.Now()
	limit := now.Add(-heldTime)
	switch late := now.Sub(due) > heldTime/heldLooks; {
	case s.open() > 0 || s.turned.After(now.Add(-heldTime/heldLooks)) || late:
		s.quiet = 0
	default:
		s.quiet++
	}
	stuck := s.quiet >= heldLooks
	s.watched = false
	s.mu.Unlock()
	if stuck {
		s.held(s.stale(limit.Add(1)))
	}
	s.watchHeld()
}
