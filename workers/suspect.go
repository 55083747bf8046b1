package workers

import (
	"time"

	"github.com/futura-run/futura/fdbmodel"
)

// apartFrom is how many workers have died with a future that runs apart from
// others. Most of those that one death makes suspects were only beside its
// cause; few of them are when the next worker dies.
const apartFrom = 2

// solitude keeps a suspect apart: while it waits for the others to end, and
// while it runs, nothing else starts or goes on after a wait for futures. Both are
// bounded. A function that waits for other futures is alone with nobody: it may
// be the suspect that it waits for, and a suspect that begins to wait is no longer
// apart.
type solitude struct {
	job   *job // nil for none
	until time.Time
}

// mayStart reports whether solitude lets a queued job start now. A suspect whose
// turn it is comes first from then on. It is called under mu.
func (s *slots) mayStart(j *job) bool {
	if s.apart.job == nil && j.future.Attempts.Suspicion() >= apartFrom {
		s.keepApart(j)
	}
	if s.apart.job != nil && s.apart.job != j {
		return false
	}
	return s.apart.job == nil || len(s.running) == s.parked.n || !s.clock.Now().Before(s.apart.until)
}

// keepApart begins or renews the solitude of a job. It is called under mu.
func (s *slots) keepApart(j *job) {
	s.apart = solitude{j, s.clock.Now().Add(s.patience)}
}

// losePatience ends what has lasted too long: the solitude of a suspect that
// runs, or the wait of one that does not. Its caller calls it again and again.
func (s *slots) losePatience() {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.apart.job
	if j == nil || s.clock.Now().Before(s.apart.until) {
		return
	}
	if _, runs := s.running[j]; runs {
		s.endApart(j)
	}
	s.wake.Broadcast()
}

// endApart ends the solitude of a job, if it has any. It is called under mu.
func (s *slots) endApart(j *job) {
	if s.apart.job != j {
		return
	}
	s.apart = solitude{}
	s.resume()
	s.wake.Broadcast()
	s.feed()
}

// watch has those that await the end of a suspect wait until it is written.
func (e *endings) watch(f *fdbmodel.ClaimedFuture) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.suspects == nil {
		e.suspects = map[*fdbmodel.ClaimedFuture]chan struct{}{}
	}
	e.suspects[f] = make(chan struct{})
}

// forget ends the waits for the ends of suspects that are written, or that nobody will write.
func (e *endings) forget(batch []fdbmodel.Completion) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.suspects) == 0 {
		return
	}
	for i := range batch {
		if written, found := e.suspects[batch[i].Future]; found {
			close(written)
			delete(e.suspects, batch[i].Future)
		}
	}
}

// awaitEnd waits until the end of a suspect that has returned is written: until then the death
// of the worker would count as its crash, whatever else was the cause. It returns at once for
// others, and when the membership ends.
func (j *job) awaitEnd() {
	e := j.life.endings
	e.mu.Lock()
	written := e.suspects[&j.future]
	e.mu.Unlock()
	if written == nil || j.life.worker.manual() { // the next step writes it
		return
	}
	select {
	case <-written:
	case <-j.life.store.Done():
	}
}

// recordBegin records that a suspect is about to run, and reports whether it may.
func (w *Worker) recordBegin(j *job) bool {
	f := &j.future
	if f.Attempts.Suspicion() == 0 {
		return true
	}
	j.life.endings.watch(f)
	err := w.gate.pass(j.life.store)
	if err == nil {
		err = j.life.reg.Begin(j.life.store, f)
	}
	if err != nil {
		w.options.Logger.Warn("a suspect is given back: its start could not be recorded", "future", f.ID, "error", err)
		return false
	}
	w.options.Logger.Info("running a future that workers died with", "future", f.ID, "function", f.Spec.Function,
		"deaths", f.Attempts.Suspicion(), "crashes", f.Attempts.Crashes, "most crashes", fdbmodel.MaxCrashes)
	return true
}
