package workers

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/futura-run/futura/internal/taskcontext"
)

// yielded are the running functions that wait for other futures. They have yielded
// their slots and CPU, so that what they wait for can run; their memory and
// devices stay theirs. Everything is under the slots' mu.
//
// A function that waits holds only memory, devices and a place under the bound of
// its name: once most functions of a name wait, no more of that name are started.
// Each name has its own bound, so any number of functions that wait for those of
// other names can't deadlock.
type yielded struct {
	most     int
	n        int
	named    map[string]int // how many, by function
	full     int            // names of which no more are started
	shut     []string       // of which no more are claimed, in order
	shuts    int            // how often shut has changed
	opening  bool           // a look at what is shut is to come
	resuming []*job         // those whose waits have ended and that need a slot, in this order
}

// isFull reports whether no more functions of a name are started.
func (p *yielded) isFull(function string) bool { return p.full > 0 && p.named[function] >= p.most }

// change counts a function that begins to wait, or with -1 one that goes on.
func (p *yielded) change(function string, by int) {
	before := p.named[function] >= p.most
	p.n += by
	p.named[function] += by
	switch after := p.named[function] >= p.most; {
	case after && !before:
		p.full++
	case before && !after:
		p.full--
	}
	if p.named[function] == 0 {
		delete(p.named, function)
	}
}

// openAfter is how long a function whose bound was reached, and of which fewer wait again, stays shut at most.
const openAfter = 50 * time.Millisecond

// yield counts a function that begins to wait, or with -1 one that goes on. No more of a function are claimed once its
// bound is reached, until an eighth of those that wait has gone on, or some have and a moment has passed: at the bound
// itself, each look for work would find what the one before left. It is called under mu.
func (s *slots) yield(function string, by int) {
	p := &s.yielded
	p.change(function, by)
	at, isShut := slices.BinarySearch(p.shut, function)
	switch n := p.named[function]; {
	case n >= p.most && !isShut:
		p.shut = slices.Insert(slices.Clone(p.shut), at, function)
		p.shuts++
	case n >= p.most || !isShut:
	case n < p.most-p.most/8:
		p.shut = slices.Delete(slices.Clone(p.shut), at, at+1)
		p.shuts++
	case !p.opening:
		p.opening = true
		s.clock.AfterFunc(s.clock.Now().Add(openAfter), s.reopen)
	}
}

// reopen has functions claimed again of which fewer wait than may.
func (s *slots) reopen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.yielded
	before := len(p.shut)
	p.shut = slices.DeleteFunc(slices.Clone(p.shut), func(name string) bool { return p.named[name] < p.most })
	if p.opening = false; len(p.shut) < before {
		p.shuts++
		s.feed()
	}
}

// names returns the functions of which no more are started, nil for none.
func (p *yielded) names() (full []string) {
	if p.full == 0 {
		return nil
	}
	for name, n := range p.named {
		if n >= p.most {
			full = append(full, name)
		}
	}
	slices.Sort(full)
	return full
}

// await gives a slot to others while its function waits for futures, until ended
// is called. A function that waits more than once at a time, in goroutines of its
// own, waits until the last of these waits has ended. ctx is that of the wait: if
// it ends, or the function's own, the function goes on without a free slot. what is nil for a wait
// that is not for futures, and refuse for one that can't be refused.
func (s *slots) await(ctx context.Context, j *job, what taskcontext.Awaited, refuse taskcontext.Refuse,
) (ended func()) {
	w := &wait{what: what, refuse: refuse, since: s.clock.Now()}
	s.beginAwait(j, w)
	return sync.OnceFunc(func() { s.endAwait(ctx, j, w) })
}

func (s *slots) beginAwait(j *job, w *wait) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.waits = append(j.waits, w)
	_, runs := s.running[j]
	if j.awaits++; j.awaits > 1 || !runs {
		return
	}
	if j.yielded {
		s.dismiss(j)
		return
	}
	j.yielded, j.yieldedAt = true, s.clock.Now()
	s.yield(j.function(), 1)
	s.free = s.free.Give(j.lent())
	s.endQuarantine(j)
	s.resume()
	s.addExecutor()
	s.feed()
	if len(s.queue) > 0 {
		s.wake.Broadcast()
	}
}

// addExecutor starts an executor if a free slot could lack one. It is called under mu.
func (s *slots) addExecutor() {
	if s.spawn != nil && !s.closed && s.executors < s.capacity.Slots+s.yielded.n+s.credit() {
		s.executors++
		s.spawn()
	}
}

// mayDropExecutor reports whether an executor may end. It is called under mu.
func (s *slots) mayDropExecutor() bool { return s.executors > s.capacity.Slots+s.yielded.n }

func (s *slots) endAwait(ctx context.Context, j *job, w *wait) {
	back := s.comeBack(j, w)
	select {
	case <-back:
		return
	default:
	}
	select {
	case <-back:
	case <-ctx.Done():
		s.insist(j, back)
	case <-j.ctx.Done():
		s.insist(j, back)
	}
}

// comeBack ends a wait. What it returns is closed once the function may go on.
func (s *slots) comeBack(j *job, w *wait) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.waits = slices.DeleteFunc(j.waits, func(other *wait) bool { return other == w })
	back := make(chan struct{})
	_, runs := s.running[j]
	if j.awaits--; j.awaits > 0 || !runs || !j.yielded {
		close(back)
		return back
	}
	j.back = back
	if s.spawn == nil {
		// Everything runs in one goroutine, and what took the slot meanwhile has
		// returned or waits for its turn.
		s.reacquire(j)
		return back
	}
	s.yielded.resuming = append(s.yielded.resuming, j)
	s.resume()
	return back
}

// insist lets a function go on although no slot is free yet. Nothing else starts
// until one is free again.
func (s *slots) insist(j *job, back chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.back == back {
		s.forget(j)
		s.reacquire(j)
	}
}

// resume lets functions go on whose waits have ended, as far as there is room. It
// is called under mu.
func (s *slots) resume() {
	for len(s.yielded.resuming) > 0 {
		j := s.yielded.resuming[0]
		_, quarantined := s.running[s.quarantine.job]
		if quarantined || !s.free.Fit(j.lent()) {
			return
		}
		s.forget(j)
		s.reacquire(j)
	}
}

// reacquire gives a function its slot back. It is called under mu.
func (s *slots) reacquire(j *job) {
	s.free = s.free.Take(j.lent())
	s.endYield(j)
	s.dismiss(j)
	// A surplus executor may end, and others of the function's name may start.
	s.feed()
	if len(s.queue) > 0 {
		s.wake.Broadcast()
	} else {
		s.wake.Signal()
	}
}

// endYield counts a function no longer among those that wait. It is called under mu.
func (s *slots) endYield(j *job) {
	j.yielded = false
	j.waited += max(0, s.clock.Now().Sub(j.yieldedAt))
	s.yield(j.function(), -1)
}

// dismiss ends the wait for a slot, if there is one. It is called under mu.
func (s *slots) dismiss(j *job) {
	s.forget(j)
	if j.back != nil {
		close(j.back)
		j.back = nil
	}
}

func (s *slots) forget(j *job) {
	if at := slices.Index(s.yielded.resuming, j); at >= 0 {
		s.yielded.resuming = slices.Delete(s.yielded.resuming, at, at+1)
	}
}

// usedSlot returns how long a function has used its slot of the time that it took.
// It is called under mu.
func (j *job) usedSlot(took time.Duration) time.Duration { return max(took-j.waited, 0) }

// awaits returns how many running functions wait for other futures, and of which
// functions no more are started because of that.
func (s *slots) awaits() (n int, full []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.yielded.n, s.yielded.names()
}
