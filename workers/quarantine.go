package workers

import (
	"log/slog"
	"time"

	"github.com/futura-run/futura/fdbmodel"
)

// quarantineFrom is how many workers must have died with a future before it runs in
// quarantine. One death makes poison candidates of all futures that the worker ran,
// and most of them only ran beside its cause; few of them do so when the next worker dies.
const quarantineFrom = 2

// quarantine has a poison candidate run alone: while it waits for the others to end,
// and while it runs, nothing else starts or goes on after a wait for futures. Both are
// bounded. Functions that wait for other futures don't count: the candidate may be
// what they wait for, and its quarantine ends when it begins to wait itself.
type quarantine struct {
	job   *job // nil for none
	until time.Time
}

// mayStart reports whether the quarantine lets a queued job start now. A poison candidate
// whose turn it is comes first from then on. It is called under mu.
func (s *slots) mayStart(j *job) bool {
	if s.quarantine.job == nil && j.future.Attempts.Suspicion() >= quarantineFrom {
		s.beginQuarantine(j)
	}
	if s.quarantine.job != nil && s.quarantine.job != j {
		return false
	}
	return s.quarantine.job == nil || len(s.running) == s.yielded.n || !s.clock.Now().Before(s.quarantine.until)
}

// beginQuarantine begins or renews the quarantine of a job. It is called under mu.
func (s *slots) beginQuarantine(j *job) {
	s.quarantine = quarantine{j, s.clock.Now().Add(s.patience)}
}

// losePatience ends what has lasted too long: the quarantine of a poison candidate that
// runs, or the wait of one that does not. Its caller calls it again and again.
func (s *slots) losePatience() {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.quarantine.job
	if j == nil || s.clock.Now().Before(s.quarantine.until) {
		return
	}
	if _, runs := s.running[j]; runs || !s.fits(j) {
		s.endQuarantine(j) // that of one without room begins anew once there is some
	}
	s.wake.Broadcast()
}

// endQuarantine ends the quarantine of a job, if it has one. It is called under mu.
func (s *slots) endQuarantine(j *job) {
	if s.quarantine.job != j {
		return
	}
	s.quarantine = quarantine{}
	s.resume()
	s.wake.Broadcast()
	s.feed()
}

// watch has calls that await the end of a poison candidate wait until it is written.
func (e *endings) watch(f *fdbmodel.ClaimedFuture) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.candidates == nil {
		e.candidates = map[*fdbmodel.ClaimedFuture]chan struct{}{}
	}
	e.candidates[f] = make(chan struct{})
}

// forget ends the waits for the ends of poison candidates that are written, or will never be.
func (e *endings) forget(batch []fdbmodel.Completion) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.candidates) == 0 {
		return
	}
	for i := range batch {
		if written, found := e.candidates[batch[i].Future]; found {
			close(written)
			delete(e.candidates, batch[i].Future)
		}
	}
}

// awaitEnd waits until the end of a poison candidate that has returned is written: until then the
// death of the worker would count as its crash, whatever the cause. It returns at once for other
// futures, and when the membership ends.
func (j *job) awaitEnd() {
	e := j.membership.endings
	e.mu.Lock()
	written := e.candidates[&j.future]
	e.mu.Unlock()
	if written == nil || j.membership.worker.manual() { // the next step writes it
		return
	}
	select {
	case <-written:
	case <-j.membership.store.Done():
	}
}

// recordBegin records that a poison candidate is about to run, and reports whether it may.
func (w *Worker) recordBegin(j *job) bool {
	f := &j.future
	if f.Attempts.Suspicion() == 0 {
		return true
	}
	j.membership.endings.watch(f)
	j.suspicion.mu.Lock()
	defer j.suspicion.mu.Unlock()
	err := w.freeze.wait(j.membership.store)
	if err == nil {
		err = j.membership.reg.Begin(j.membership.store, f)
	}
	j.suspicion.recorded = err == nil
	if err != nil {
		w.options.Logger.Warn("a poison candidate is given back: its start could not be recorded", "future",
			f.ID, "error", err)
		return false
	}
	level := slog.LevelDebug // a dead worker leaves many that it had not begun, and a turn may run again many times
	if f.Attempts.Crashes > 0 {
		level = slog.LevelInfo
	}
	w.options.Logger.Log(j.membership.store, level, "running a future that workers died with", "future", f.ID, "function",
		f.Spec.Function, "deaths", f.Attempts.Suspicion(), "crashes", f.Attempts.Crashes, "most crashes", fdbmodel.MaxCrashes)
	return true
}
