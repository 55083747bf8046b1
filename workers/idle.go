package workers

import (
	"context"
	"errors"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
)

const (
	// ringDelay is how long a worker on a store of its own process waits for the
	// process's own hint before it registers as idle in the store.
	ringDelay = 50 * time.Millisecond
	// unwokenShare is how many polls a worker makes in the time of one while the store has no room for
	// the watch that would wake it.
	unwokenShare = 4
	// settleTime is how long a worker on another store waits before that for what it runs to
	// end and be written, and hintTime for the next hint, where one led to its last claim. A
	// registration in between would conflict with its own claim, and the submit that follows
	// would have to undo it. Where hints come in turn with what it ends, it waits twice as
	// long as for the last one, up to hintTimeMax. What a client without hints submits
	// meanwhile waits too: once there was some, the next hintless times are short again.
	settleTime  = 10 * time.Millisecond
	hintTime    = 3 * time.Millisecond
	hintTimeMax = ringDelay
	hintless    = 50
	// maxMisses is how often in a row a worker retries a claim at once after a hint
	// that there is work.
	maxMisses = 3
)

// idle waits until there may be work. No submit falls between its registration
// and the look before it.
func (m *membership) idle(ctx context.Context) error {
	for {
		request, ok := m.request()
		if !ok {
			return nil
		}
		hint := m.reg.RequestHint(request)
		again, err := m.idleBy(ctx, request, hint)
		hint.Cancel()
		if err != nil || !again {
			return err
		}
	}
}

// idleBy is idle by one request. It returns true if the worker has more room than the request says.
func (m *membership) idleBy(ctx context.Context, request fdbmodel.ClaimRequest, hint *fdbmodel.HintRequest,
) (again bool, err error) {
	m.idleSince = m.worker.cluster.Clock().Now()
	if hint.Missed() {
		if n, err := m.claimNow(ctx, request); n > 0 || err != nil {
			return false, err
		}
	}
	switch m.settle(ctx, hint) {
	case settledLook:
		return false, nil
	case settledRoom:
		return true, nil
	}
	watch, err := m.reg.EnterIdleRing(ctx, request)
	if err != nil {
		return false, err
	}
	if watch == nil {
		// A future came meanwhile, or the last claim did not find it.
		if m.byHint {
			m.hintless = hintless
		}
		m.byHint = false
		if m.misses++; m.misses > maxMisses {
			m.pause(ctx, ringDelay)
		}
		return false, nil
	}
	defer watch.Cancel()
	// The claim that follows takes the worker out of the ring.
	return m.rest(ctx, request, watch, hint)
}

// settled is what a worker does next that has nothing to do.
type settled int

const (
	settledIdle settled = iota // it registers as idle in the store, which is a last look
	settledRoom                // the same, for more room than it asked for
	settledLook                // it looks for work
)

// settle waits before the worker registers as idle in the store.
func (m *membership) settle(ctx context.Context, hint *fdbmodel.HintRequest) settled {
	if kv.TraitsOf(m.worker.cluster.Database()).Exclusive {
		return m.awaitNews(ctx, hint, ringDelay, func() bool { return true })
	}
	next := m.awaitNews(ctx, hint, settleTime, m.isBusy)
	if next == settledIdle && m.byHint {
		next = m.awaitNews(ctx, hint, m.hintTime(), func() bool { return true })
	}
	return next
}

// hintTime is how long the worker waits for the next hint before it registers as idle.
func (m *membership) hintTime() time.Duration {
	if m.hintless > 0 {
		m.hintless--
		return hintTime
	}
	if twice := 2 * m.hintedAfter; twice <= hintTimeMax {
		return max(twice, hintTime)
	}
	return hintTime
}

// hinted notes that a hint has ended an idle time.
func (m *membership) hinted() {
	m.byHint, m.hintedAfter = true, m.worker.cluster.Clock().Now().Sub(m.idleSince)
}

// awaitNews waits for a while, as long as that is worth it, for something to do or more room.
func (m *membership) awaitNews(ctx context.Context, hint *fdbmodel.HintRequest, wait time.Duration, worth func() bool,
) settled {
	clk := m.worker.cluster.Clock()
	end := clk.At(clk.Now().Add(wait))
	defer end.Stop()
	for worth() {
		select {
		case <-end.C():
			return settledIdle
		case <-hint.C():
			m.hinted()
			return settledLook
		case <-m.worker.slots.hungry:
			if m.looksForRoom() {
				return settledLook
			}
			return settledRoom
		case <-m.endings.written:
		case <-ctx.Done():
			return settledLook
		}
	}
	return settledIdle
}

// looksForRoom reports whether the worker looks for work when it gets more room.
func (m *membership) looksForRoom() bool { return m.reg.LacksRoom() || m.worker.options.Source != nil }

// isBusy reports whether something runs that the worker claimed, or has ended and is not written.
func (m *membership) isBusy() bool { return m.worker.slots.isRunning() || m.endings.open() > 0 }

// isRunning reports whether something runs, or waits for that.
func (s *slots) isRunning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)+len(s.queue) > 0
}

// rest waits until the worker is woken, or sees by itself that there may be work. It returns
// true if the worker has other room than in request, for which there was no work. Where the
// store has no room for the watch, it waits for a poll at most, so that the worker asks for one
// again, and polls more often.
func (m *membership) rest(ctx context.Context, request fdbmodel.ClaimRequest, watch kv.Watch,
	hint *fdbmodel.HintRequest,
) (anew bool, err error) {
	clk, woken := m.worker.cluster.Clock(), watch.Done()
	look, since := m.reg.Poll, clk.Now()
	for {
		every, fewer := shared(m.worker.options.Poll, m.reg.Alike()), (<-chan struct{})(nil)
		m.reg.SharePolls(sharers(m.worker.options.Poll, m.reg.Alike()))
		if fleet := m.worker.options.Fleet; fleet != nil {
			look = m.reg.PollAll
			every, fewer = fleet.pollEvery(m.worker.options.Poll)
		}
		wait := m.jittered(every)
		if woken == nil {
			wait /= unwokenShare
		}
		poll := clk.At(since.Add(wait))
		again, stopAgain := m.leftUntil()
		select {
		case <-again:
		case <-poll.C():
			stopAgain()
			if found, err := look(ctx, request); found || err != nil || woken == nil {
				m.byHint = m.byHint && !found
				return false, err
			}
			since = clk.Now()
			continue
		case <-fewer:
			poll.Stop()
			stopAgain()
			continue
		case <-woken:
			if errors.Is(watch.Err(), kv.ErrTooManyWatches) {
				woken = nil
				poll.Stop()
				stopAgain()
				continue
			}
			m.byHint = false
		case <-hint.C():
			m.hinted()
		case <-m.worker.slots.hungry:
			anew = !m.looksForRoom()
		case <-ctx.Done():
		}
		poll.Stop()
		stopAgain()
		return anew, nil
	}
}

// leftUntil returns a channel that receives once the worker may take futures that it
// left to others, and how to end that.
func (m *membership) leftUntil() (<-chan time.Time, func()) {
	at := m.reg.LeftUntil()
	if at.IsZero() {
		return nil, func() {}
	}
	timer := m.worker.cluster.Clock().At(at)
	return timer.C(), func() { timer.Stop() }
}

// jittered spreads d by a quarter to each side, by the worker's id: a fleet
// does not poll in step.
func (m *membership) jittered(d time.Duration) time.Duration {
	id := m.reg.ID()
	spread := time.Duration(id[len(id)-1]%16) * d / 32
	return d - d/4 + spread
}
