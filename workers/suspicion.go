package workers

import (
	"context"
	"sync"
	"time"

	"github.com/futura-run/futura/internal/taskcontext"
)

// innocentAfter is how long a poison candidate has waited when the death of its worker does not count as its crash any
// more. What is over sooner costs no commits, and whoever ends its process as it begins to wait is still found.
const innocentAfter = 100 * time.Millisecond

// suspicion says whether it is on record that a poison candidate runs.
type suspicion struct {
	mu       sync.Mutex // held during the transactions that change the record
	recorded bool
	proven   bool // the attempt got further than those before it: a step of it is recorded
}

// await gives the job's slot to others while its function waits, until ended is called; see slots.await. A poison
// candidate is none meanwhile: the function does nothing, and may wait for days in which workers die.
func (j *job) await(ctx context.Context, what taskcontext.Awaited, refuse taskcontext.Refuse) (ended func()) {
	w := j.membership.worker
	back := w.slots.await(ctx, j, what, refuse)
	suspects := j.suspects()
	if len(suspects) == 0 || w.manual() {
		return back
	}
	stop := w.cluster.Clock().AfterFunc(w.cluster.Now().Add(innocentAfter), func() {
		for _, suspect := range suspects {
			j.membership.others.start(func() { suspect.absolve(j) })
		}
	})
	return sync.OnceFunc(func() {
		stop()
		back()
		for _, suspect := range suspects {
			suspect.suspectAgain(j)
		}
	})
}

// suspects are the poison candidates that a job runs: itself, and the member that its bundle has alone.
func (j *job) suspects() (suspects []*job) {
	all := []*job{j}
	if members := j.bundled.Load(); members != nil && len(*members) == 1 {
		all = append(all, (*members)[0])
	}
	for _, one := range all {
		if one.future.Attempts.Suspicion() > 0 {
			suspects = append(suspects, one)
		}
	}
	return suspects
}

// absolve removes from the record that a poison candidate runs, if the job that runs it still waits.
func (j *job) absolve(in *job) {
	s := &j.suspicion
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.recorded || !j.membership.worker.slots.waits(in) {
		return
	}
	if err := j.membership.reg.Absolve(j.membership.store, &j.future); err != nil {
		j.membership.worker.rare.Warn("a poison candidate that waits stays on record as one that runs", "future",
			j.future.ID, "error", err)
		return
	}
	s.recorded = false
}

// suspectAgain records that a poison candidate goes on after a wait of the job that runs it.
func (j *job) suspectAgain(in *job) {
	s := &j.suspicion
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recorded || s.proven || j.settled.Load() || j.membership.worker.slots.waits(in) {
		return
	}
	if err := j.membership.reg.Begin(j.membership.store, &j.future); err != nil {
		j.membership.worker.rare.Warn("a poison candidate goes on and is not on record", "future", j.future.ID, "error",
			err)
		return
	}
	s.recorded = true
}

// prove notes that a step of the attempt is recorded, which takes it off the record as well.
func (j *job) prove() {
	if j.future.Attempts.Suspicion() == 0 {
		return
	}
	s := &j.suspicion
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorded, s.proven = false, true
}

// waits reports whether a function waits without its slot.
func (s *slots) waits(j *job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return j.yielded
}
