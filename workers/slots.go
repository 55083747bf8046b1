package workers

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/signal"
)

// slots are where jobs run, and what waits for them. They outlast memberships:
// a function that ignores its context keeps its slot and resources until it
// returns, even if its claim was lost.
type slots struct {
	clock    clock.Clock
	capacity layout.Resources
	patience time.Duration // bounds the quarantine

	mu         sync.Mutex
	wake       *sync.Cond // queue, free or closed changed
	queue      []*job     // claimed and not started, oldest first
	running    map[*job]struct{}
	free       layout.Resources // what no running job uses; of slots less than 0 in a pipeline
	withheld   int              // of the slots; see Worker.Limit
	lean       bool             // nothing is claimed ahead
	pace       time.Duration    // moving average of a run
	pipeline   bool             // what may wait for a slot waits where it runs
	serial     bool             // where it runs one after the other
	limiter    bool             // where it runs, limits of owners are kept
	turned     time.Time        // when a slot last became free, or the last free one was taken
	watched    bool             // what is queued is looked at
	quiet      int              // looks in a row since which no slot has become free
	held       func([]*job)     // gives back what waits too long; nil to leave it
	closed     bool
	claiming   bool // a claim is under way
	asked      int  // the shuts of yielded at the last request
	barren     int  // those at which the last claim found nothing but functions that were shut
	offered    int  // how many futures may come with what ends
	succeeded  int  // how many came of late, a moving average
	owners     owners
	quarantine quarantine
	early      map[layout.ID]struct{} // cancels that came before their claim did
	gathers    map[*gather]struct{}   // under way
	waiting    bool                   // the claimer waits for what is used
	yielded    yielded
	executors  int    // run jobs, or wait for one
	spawn      func() // starts an executor; nil if there are none
	lazy       bool   // executors start when something is queued, and end when nothing is

	hungry   chan struct{} // there is room, or more is free
	returned chan struct{} // a function returned
}

func newSlots(clk clock.Clock, capacity layout.Resources, patience time.Duration, mostAwaiting int) *slots {
	s := &slots{
		clock: clk, capacity: capacity, patience: patience, free: capacity, running: map[*job]struct{}{}, owners: owners{},
		early: map[layout.ID]struct{}{}, gathers: map[*gather]struct{}{},
		yielded: yielded{most: mostAwaiting, named: map[string]int{}},
		hungry:  make(chan struct{}, 1), returned: make(chan struct{}, 1),
	}
	s.wake = sync.NewCond(&s.mu)
	return s
}

// startExecutors starts an executor for each slot. spawn starts one.
func (s *slots) startExecutors(spawn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spawn = spawn
	if s.lazy {
		return
	}
	for range s.capacity.Slots {
		s.addExecutor()
	}
}

// blocked is how many queued futures may not start because too many of their
// function wait. It is called under mu.
func (s *slots) blocked() (n int) {
	if s.yielded.full == 0 {
		return 0
	}
	for _, j := range s.queue {
		if s.yielded.isFull(j.function()) {
			n++
		}
	}
	return n
}

// room is how many futures to claim now: enough to refill what may wait, once
// half of that has gone, and to leave room for the successors of what runs. It is called under mu.
func (s *slots) room() int {
	ahead, queued := s.ahead(), s.unblocked()
	room := s.unused(ahead, queued) - min(s.succeeded, ahead/2)
	if s.closed || s.quarantine.job != nil || queued > ahead/2 || room <= 0 || len(s.queue) > aheadMax {
		return 0
	}
	return min(room, fdbmodel.MaxClaim)
}

// unblocked is how many queued futures don't wait for others of their owner or function. It is called under mu.
func (s *slots) unblocked() int { return len(s.queue) - s.owners.blocked(s.extra()) - s.blocked() }

// unused is how many more futures may wait or run beside those that are queued. It is called under mu.
func (s *slots) unused(ahead, queued int) int {
	return max(0, max(0, s.open())+ahead-s.beyond()) - queued - s.offered
}

// request says what to claim now; Max is 0 for nothing. What waits in the queue
// counts as used. runs reports whether the worker can run a function.
func (s *slots) request(runs func(string) bool) fdbmodel.ClaimRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	free, n := s.free, s.room()
	for _, j := range s.queue {
		free = free.Take(j.requirements())
	}
	all := s.capacity
	s.waiting = n == 0 || free.CPU < all.CPU || free.RAM < all.RAM || free.GPU < all.GPU
	s.claiming = n > 0
	free.Slots = n
	request := fdbmodel.ClaimRequest{Free: free, Max: n, Last: s.lean}
	if full := s.owners.full(s.extra()); full != nil {
		request.Skip = func(group string) bool { return full[group] }
		s.waiting = true
	}
	s.asked = s.yielded.shuts
	if open := s.ofOpen(runs); open != nil {
		request.Runs = open
		s.waiting = true
	}
	return request
}

// ofOpen is runs without the functions that are shut, nil if none are. It is called under mu.
func (s *slots) ofOpen(runs func(string) bool) func(string) bool {
	shut := s.yielded.shut
	if len(shut) == 0 {
		return nil
	}
	return func(function string) bool { return runs(function) && !slices.Contains(shut, function) }
}

// foundNone notes that a claim found nothing but futures of functions that it was not to take.
func (s *slots) foundNone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.barren = s.asked
}

// isBarren reports whether a claim would find what the one before left. It is called under mu.
func (s *slots) isBarren() bool { return len(s.yielded.shut) > 0 && s.barren == s.yielded.shuts }

// admit queues what a claim took, or what came from the source. It returns the futures that were
// cancelled meanwhile.
func (s *slots) admit(m *membership, futures []fdbmodel.ClaimedFuture, sourced bool) (unwanted []*job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claiming, s.barren = false, 0
	return s.enqueue(m, futures, sourced)
}

// enqueue is admit, called under mu.
func (s *slots) enqueue(m *membership, futures []fdbmodel.ClaimedFuture, sourced bool) (unwanted []*job) {
	now := s.clock.Now()
	for i := range futures {
		j := &job{membership: m, future: futures[i], claimed: now, sourced: sourced}
		if _, cancelled := s.early[j.future.ID]; cancelled || j.future.Cancel != nil || m.closing.Load() {
			unwanted = append(unwanted, j)
			continue
		}
		s.queue = append(s.queue, j)
		s.owners.queue(&j.future, 1)
	}
	if !s.claiming && s.offered == 0 {
		clear(s.early)
	}
	if s.pipeline || s.lazy {
		for range s.queue {
			s.addExecutor()
		}
	}
	switch len(s.queue) {
	case 0:
	case 1:
		s.wake.Signal()
	default:
		s.wake.Broadcast()
	}
	return unwanted
}

// take waits for the next job that fits into what is free. It returns nil when
// the slots are closed, or there are more executors than slots or than needed.
func (s *slots) take() *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed {
		if j := s.pick(); j != nil {
			return j
		}
		if s.mayDropExecutor() || s.lazy && len(s.queue) == 0 {
			break
		}
		s.wake.Wait()
	}
	s.executors--
	return nil
}

// tryTake is take without waiting.
func (s *slots) tryTake() *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pick()
}

// pick returns the next job that may start. Functions whose waits have ended come
// first. It is called under mu.
func (s *slots) pick() *job {
	if len(s.yielded.resuming) > 0 {
		return nil
	}
	for i, j := range s.queue {
		if !s.fits(j) || !s.mayStart(j) {
			continue
		}
		if i == 0 {
			s.queue[0] = nil
			s.queue = s.queue[1:]
		} else {
			s.queue = append(s.queue[:i], s.queue[i+1:]...)
		}
		if s.free = s.free.Take(j.requirements()); s.open() <= 0 {
			s.turned = s.clock.Now()
		}
		s.owners.start(&j.future)
		j.enterSlot(s.clock.Now())
		s.running[j] = struct{}{}
		if s.quarantine.job == j {
			s.beginQuarantine(j)
		}
		s.feed()
		return j
	}
	return nil
}

// fits reports whether there is room for a queued job. It is called under mu.
func (s *slots) fits(j *job) bool {
	return s.startable().Fit(j.requirements()) && !s.yielded.isFull(j.function()) &&
		s.owners.mayRun(&j.future, s.extra())
}

// feed wakes the claimer if it waits for room and there is some. It is called
// under mu.
func (s *slots) feed() {
	if s.waiting && !s.isBarren() && s.room() > 0 {
		s.waiting = false
		signal.Send(s.hungry)
	}
}

// giveBack frees what a function used that has returned.
func (s *slots) giveBack(j *job, took time.Duration) {
	s.mu.Lock()
	delete(s.running, j)
	s.turned = s.clock.Now()
	took = s.served(j, took)
	s.free = s.free.Give(j.requirements())
	if j.yielded { // its waits outlast it
		s.free = s.free.Take(j.lent())
		s.endYield(j)
		s.dismiss(j)
	}
	s.endQuarantine(j)
	s.resume()
	s.owners.end(&j.future)
	s.pace += (max(j.usedSlot(took), time.Microsecond) - s.pace) / 8
	s.pace = max(s.pace, 1)
	s.feed()
	// The slot itself looks next. Another may have waited for the resources.
	_, limit := limited(&j.future)
	if q := j.requirements(); len(s.queue) > 0 && (limit > 0 || j.waited > 0 || q.CPU > 0 || q.RAM > 0 || q.GPU > 0) {
		s.wake.Broadcast()
	}
	s.mu.Unlock()
	signal.Send(s.returned)
}

// cancel ends the context of a cancelled future, or takes it out of the queue
// and returns it.
func (s *slots) cancel(id layout.ID) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, j := range s.queue {
		if j.future.ID == id {
			s.queue = append(s.queue[:i], s.queue[i+1:]...)
			s.owners.queue(&j.future, -1)
			s.endQuarantine(j)
			s.feed()
			return j
		}
	}
	for j := range s.running {
		if j.future.ID == id && !j.settled.Load() {
			j.cancel(ErrCancelled)
			return nil
		}
	}
	if s.cancelMember(id) {
		return nil
	}
	if s.claiming || s.offered > 0 {
		s.early[id] = struct{}{}
	}
	for g := range s.gathers {
		g.early[id] = struct{}{}
	}
	return nil
}

// stale takes out of the queue what has waited since before limit, except for a
// poison candidate whose turn it is.
func (s *slots) stale(limit time.Time) []*job {
	return s.unqueue(func(j *job) bool { return j.claimed.Before(limit) && s.quarantine.job != j })
}

func (s *slots) unqueue(which func(*job) bool) (out []*job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var kept []*job
	for _, j := range s.queue {
		if which(j) {
			out = append(out, j)
			s.owners.queue(&j.future, -1)
			s.endQuarantine(j)
		} else {
			kept = append(kept, j)
		}
	}
	s.queue = kept
	s.feed()
	return out
}

// runningOf returns what runs of a membership and is not settled, in the order of the ids:
// simulations repeat what follows.
func (s *slots) runningOf(m *membership) (jobs []*job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for j := range s.running {
		if j.membership == m && !j.settled.Load() {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b *job) int { return bytes.Compare(a.future.ID[:], b.future.ID[:]) })
	return jobs
}

// status returns what is free, and how many futures run and wait.
func (s *slots) status() (free layout.Resources, running, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free = s.free
	free.Slots, free.CPU = max(0, s.open()), max(0, free.CPU)
	return free, len(s.running), len(s.queue)
}

// close lets the slots end after what they run.
func (s *slots) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.wake.Broadcast()
}
