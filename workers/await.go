package workers

import (
	"context"
	"slices"
	"sync"
	"time"
)

// parked are the running functions that wait for other futures. They have no slot
// and no CPU meanwhile, so that what they wait for can run; their memory and
// devices stay theirs. Everything is under the slots' mu.
//
// Nobody who waits holds what another one waits for, except for memory, devices
// and their number: a function of a name of which most wait is not started. So
// functions that wait for those of other names can't deadlock, whatever their
// number, because each name has its own bound.
type parked struct {
	most     int
	n        int
	named    map[string]int // how many, by function
	full     int            // names of which no more are started
	resuming []*job         // those whose waits have ended and that need a slot, in this order
}

// isFull reports whether no more functions of a name are started.
func (p *parked) isFull(function string) bool { return p.full > 0 && p.named[function] >= p.most }

// change counts a function that begins to wait, or with -1 one that goes on.
func (p *parked) change(function string, by int) {
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

// names returns the functions of which no more are started, nil for none.
func (p *parked) names() (full []string) {
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
// it ends, or the function's own, the function goes on without a free slot.
func (s *slots) await(ctx context.Context, j *job) (ended func()) {
	s.beginAwait(j)
	return sync.OnceFunc(func() { s.endAwait(ctx, j) })
}

func (s *slots) beginAwait(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, runs := s.running[j]
	if j.awaits++; j.awaits > 1 || !runs {
		return
	}
	if j.parked {
		s.dismiss(j)
		return
	}
	j.parked, j.parkedAt = true, s.clock.Now()
	s.parked.change(j.function(), 1)
	s.free = s.free.Give(j.lent())
	s.endApart(j)
	s.resume()
	s.staff()
	s.feed()
	if len(s.queue) > 0 {
		s.wake.Broadcast()
	}
}

// staff starts a thread if a free slot could lack one. It is called under mu.
func (s *slots) staff() {
	if s.spawn != nil && !s.closed && s.threads < s.capacity.Slots+s.parked.n+s.credit() {
		s.threads++
		s.spawn()
	}
}

// overstaffed reports whether a thread may end. It is called under mu.
func (s *slots) overstaffed() bool { return s.threads > s.capacity.Slots+s.parked.n }

func (s *slots) endAwait(ctx context.Context, j *job) {
	back := s.comeBack(j)
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
func (s *slots) comeBack(j *job) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	back := make(chan struct{})
	_, runs := s.running[j]
	if j.awaits--; j.awaits > 0 || !runs || !j.parked {
		close(back)
		return back
	}
	j.back = back
	if s.spawn == nil {
		// All is in one thread, and what took the slot meanwhile has returned or
		// waits for its turn.
		s.unpark(j)
		return back
	}
	s.parked.resuming = append(s.parked.resuming, j)
	s.resume()
	return back
}

// insist lets a function go on whose slot nobody has given back yet. Nothing else
// starts until one is free again.
func (s *slots) insist(j *job, back chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.back == back {
		s.forget(j)
		s.unpark(j)
	}
}

// resume lets functions go on whose waits have ended, as far as there is room. It
// is called under mu.
func (s *slots) resume() {
	for len(s.parked.resuming) > 0 {
		j := s.parked.resuming[0]
		_, apart := s.running[s.apart.job]
		if apart || !s.free.Fit(j.lent()) {
			return
		}
		s.forget(j)
		s.unpark(j)
	}
}

// unpark gives a function its slot back. It is called under mu.
func (s *slots) unpark(j *job) {
	s.free = s.free.Take(j.lent())
	s.endPark(j)
	s.dismiss(j)
	// A thread too many may end, and others of its name may start.
	s.feed()
	if len(s.queue) > 0 {
		s.wake.Broadcast()
	} else {
		s.wake.Signal()
	}
}

// endPark counts a function no longer among those that wait. It is called under mu.
func (s *slots) endPark(j *job) {
	j.parked = false
	j.waited += max(0, s.clock.Now().Sub(j.parkedAt))
	s.parked.change(j.function(), -1)
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
	if at := slices.Index(s.parked.resuming, j); at >= 0 {
		s.parked.resuming = slices.Delete(s.parked.resuming, at, at+1)
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
	return s.parked.n, s.parked.names()
}
