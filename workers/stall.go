package workers

import (
	"sync"
	"time"
)

// stalled returns a function of which no more are started because so many wait for
// other futures, and how many functions wait, if all that run do; "" otherwise.
func (s *slots) stalled() (function string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	full := s.yielded.names()
	if len(full) == 0 || s.yielded.n < len(s.running) || len(s.yielded.resuming) > 0 {
		return "", 0
	}
	return full[0], s.yielded.n
}

// stallPatience is how long all functions wait before the log says so.
const stallPatience = 10 * time.Second

// stall remembers since when all functions wait and the bound of one is reached.
type stall struct {
	mu    sync.Mutex
	since time.Time // zero if they don't
	told  bool
}

// warnOfStall tells the log, once, that functions may wait for what can't start.
func (w *Worker) warnOfStall(now time.Time) {
	function, n := w.slots.stalled()
	w.stall.mu.Lock()
	defer w.stall.mu.Unlock()
	switch s := &w.stall; {
	case function == "":
		s.since, s.told = time.Time{}, false
	case s.since.IsZero():
		s.since = now
	case !s.told && now.Sub(s.since) >= stallPatience:
		s.told = true
		w.options.Logger.Warn("all running functions wait for other futures, and so many are of one function that no more "+
			"of it are started; if they wait for another one of it, none ends: raise MaxAwaiting, or start another worker",
			"function", function, "max awaiting", w.options.MaxAwaiting, "awaiting", n)
	}
}
