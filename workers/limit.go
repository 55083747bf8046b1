package workers

import "github.com/futura-run/futura/internal/signal"

// Limit has the worker run at most n functions at a time, and claim for so many, until the
// next Limit: 0 is none, and all of its slots or more is no limit. What runs goes on. Its
// heartbeats count the other slots as used, so that heads of batches give it less too. Without
// ahead it claims nothing that would wait for a slot, and of the workers of its process it is
// woken last.
func (w *Worker) Limit(n int, ahead bool) {
	w.slots.limit(n, ahead)
	signal.Send(w.slots.hungry)
}

// limit withholds all slots but n.
func (s *slots) limit(n int, ahead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lean = !ahead
	s.withheld = s.capacity.Slots - min(max(n, 0), s.capacity.Slots)
	s.wake.Broadcast()
}

// open is how many slots are free and not withheld; less than 0 if more run than may. It is
// called under mu.
func (s *slots) open() int { return s.free.Slots - s.withheld }
