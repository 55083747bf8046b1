// Package clock is the time that a cluster runs by: the machine's, or a
// virtual one that a test moves.
package clock

import (
	"context"
	"slices"
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
	// AfterFunc calls f once Now is t or later, unless stop was called before. stop
	// may be called more than once and does not wait for f.
	AfterFunc(t time.Time, f func()) (stop func())
}

// Timer fires once.
type Timer interface {
	// C is sent one value when the timer fires.
	C() <-chan time.Time
	// Stop ends the timer. It may be called more than once, also after firing.
	Stop()
}

// Wait waits until the clock is at t. It returns ctx's error if that ends first, also
// where t has passed.
func Wait(ctx context.Context, c Clock, t time.Time) error {
	timer := c.At(t)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Sleep waits for d. It returns ctx's error if that ends first.
func Sleep(ctx context.Context, c Clock, d time.Duration) error { return Wait(ctx, c, c.Now().Add(d)) }

// Earlier returns the earlier of two times, where the zero time is none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Real is the machine's clock. Its AfterFunc calls in a goroutine of its own.
type Real struct{}

// Now implements Clock.
func (Real) Now() time.Time { return time.Now() }

// At implements Clock.
func (Real) At(t time.Time) Timer { return realTimer{time.NewTimer(time.Until(t))} }

// AfterFunc implements Clock.
func (Real) AfterFunc(t time.Time, f func()) (stop func()) {
	timer := time.AfterFunc(time.Until(t), f)
	return func() { timer.Stop() }
}

type realTimer struct{ timer *time.Timer }

func (t realTimer) C() <-chan time.Time { return t.timer.C }
func (t realTimer) Stop()               { t.timer.Stop() }

// Virtual is a clock that changes only when Advance moves it.
type Virtual struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*virtualTimer]struct{}
	made   int // timers so far
}

// NewVirtual returns a clock set to start.
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
	timer := &virtualTimer{clock: v, at: t, c: make(chan time.Time, 1)}
	v.add(timer)
	return timer
}

// AfterFunc implements Clock. It calls in the goroutine that moves the clock to t,
// and at once if t has passed.
func (v *Virtual) AfterFunc(t time.Time, f func()) (stop func()) {
	timer := &virtualTimer{clock: v, at: t, call: f}
	v.add(timer)
	return timer.Stop
}

func (v *Virtual) add(t *virtualTimer) {
	v.mu.Lock()
	v.made++
	t.number = v.made
	v.timers[t] = struct{}{}
	v.mu.Unlock()
	v.Advance(0)
}

// Advance moves the clock by d and fires the timers that have come due, in the
// order of their times.
func (v *Virtual) Advance(d time.Duration) {
	v.mu.Lock()
	v.now = v.now.Add(d)
	now := v.now
	var due []*virtualTimer
	for t := range v.timers {
		if !t.at.After(now) {
			due = append(due, t)
		}
	}
	v.mu.Unlock()
	slices.SortFunc(due, func(a, b *virtualTimer) int {
		if order := a.at.Compare(b.at); order != 0 {
			return order
		}
		return a.number - b.number
	})
	for _, t := range due {
		if t.take() {
			t.fire(now)
		}
	}
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

// virtualTimer has either a channel or a function.
type virtualTimer struct {
	clock  *Virtual
	at     time.Time
	number int
	c      chan time.Time
	call   func()
}

func (t *virtualTimer) C() <-chan time.Time { return t.c }

func (t *virtualTimer) Stop() { t.take() }

// take removes the timer from its clock, and reports whether it was there: each
// timer fires or is stopped, once.
func (t *virtualTimer) take() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	_, there := t.clock.timers[t]
	delete(t.clock.timers, t)
	return there
}

func (t *virtualTimer) fire(now time.Time) {
	if t.call != nil {
		t.call()
	} else {
		t.c <- now
	}
}
