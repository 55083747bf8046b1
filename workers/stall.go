package workers

import (
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// await records that a running function waits for other futures, until ended is
// called.
func (s *slots) await(j *job) (ended func()) {
	s.changeAwaits(j, 1)
	return sync.OnceFunc(func() { s.changeAwaits(j, -1) })
}

// changeAwaits counts each function once, however many waits it has.
func (s *slots) changeAwaits(j *job, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := j.awaits > 0
	j.awaits += n
	_, runs := s.running[j]
	switch after := j.awaits > 0; {
	case !runs || after == before:
	case after:
		s.awaiting++
	default:
		s.awaiting--
	}
}

// awaits returns how many running functions wait for other futures.
func (s *slots) awaits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.awaiting
}

// stalled returns the number of slots if each of them is held by a function that
// waits for other futures, and one of those futures; 0 otherwise.
func (s *slots) stalled() (n int, one layout.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free.Slots > 0 || s.awaiting < len(s.running) {
		return 0, one
	}
	for j := range s.running {
		return len(s.running), j.future.ID
	}
	return 0, one
}

// stallPatience is how long all functions wait before the log says so.
const stallPatience = 10 * time.Second

// stall remembers since when all slots wait.
type stall struct {
	mu    sync.Mutex
	since time.Time // zero if they don't
	told  bool
}

// warnOfStall tells the log, once, that no slot can become free by itself.
func (w *Worker) warnOfStall(now time.Time) {
	n, one := w.slots.stalled()
	w.stall.mu.Lock()
	defer w.stall.mu.Unlock()
	switch s := &w.stall; {
	case n == 0:
		s.since, s.told = time.Time{}, false
	case s.since.IsZero():
		s.since = now
	case !s.told && now.Sub(s.since) >= stallPatience:
		s.told = true
		w.options.Logger.Warn("all slots are held by functions that wait for other futures; if those wait for a slot of "+
			"this worker, none ends: start another worker, or this one with more slots", "slots", n, "one", one)
	}
}
