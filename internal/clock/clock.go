// Package clock is the time that a cluster runs by: the machine's, or a
// virtual one that a test moves.
package clock

import (
	"sync"
	"time"
)

// Clock tells the time and wakes at times. Its methods may be called from many
// goroutines.
type Clock interface {
	// Now returns the time. Differences of two answers of one clock are
	// durations by a clock that never goes backwards.
	Now() time.Time
	// At returns a timer that fires once Now is t or later.
	At(t time.Time) Timer
}

// Timer fires once.
type Timer interface {
	// C is sent one value when the timer fires.
	C() <-chan time.Time
	// Stop ends the timer. It may be called more than once, also after firing.
	Stop()
}

// Real is the machine's clock.
type Real struct{}

// Now implements Clock.
func (Real) Now() time.Time { return time.Now() }

// At implements Clock.
func (Real) At(t time.Time) Timer { return realTimer{time.NewTimer(time.Until(t))} }

type realTimer struct{ timer *time.Timer }

func (t realTimer) C() <-chan time.Time { return t.timer.C }
func (t realTimer) Stop()               { t.timer.Stop() }

// Virtual is a clock that stands still until Advance moves it.
type Virtual struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*virtualTimer]struct{}
}

// NewVirtual returns a clock that stands at start.
func NewVirtual(start time.Time) *Virtual {
	return &Virtual{now: start, timers: map[*virtualTimer]struct{}{}}
}

// Now implements Clock.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// At implements Clock.
func (v *Virtual) At(t time.Time) Timer {
	v.mu.Lock()
	defer v.mu.Unlock()
	timer := &virtualTimer{clock: v, at: t, c: make(chan time.Time, 1)}
	v.timers[timer] = struct{}{}
	v.fire()
	return timer
}

// Advance moves the clock by d and fires the timers that have come due.
func (v *Virtual) Advance(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now = v.now.Add(d)
	v.fire()
}

// Next returns the time of the timer that fires next, and false if there is
// none.
func (v *Virtual) Next() (time.Time, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var first time.Time
	found := false
	for t := range v.timers {
		if !found || t.at.Before(first) {
			first, found = t.at, true
		}
	}
	return first, found
}

func (v *Virtual) fire() {
	for t := range v.timers {
		if !t.at.After(v.now) {
			delete(v.timers, t)
			t.c <- v.now
		}
	}
}

type virtualTimer struct {
	clock *Virtual
	at    time.Time
	c     chan time.Time
}

func (t *virtualTimer) C() <-chan time.Time { return t.c }

func (t *virtualTimer) Stop() {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	delete(t.clock.timers, t)
}
