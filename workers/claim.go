package workers

import (
	"context"
	"errors"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/internal/clock"
)

// ringDelay is how long a worker on a store of its own process waits for the
// process's own hint before it registers as idle in the store.
const ringDelay = 50 * time.Millisecond

// maxMisses is how often in a row a worker retries a claim at once after a hint
// that there is work.
const maxMisses = 3

// Waits after a claim that failed for a reason that may pass.
const (
	claimWaitMin = 50 * time.Millisecond
	claimWaitMax = 5 * time.Second
)

// claimLoop claims when the queue runs low, and waits when there is nothing to
// claim.
func (m *membership) claimLoop(ctx context.Context) error {
	for wait := claimWaitMin; ; {
		if m.worker.freeze.wait(ctx) != nil {
			return nil
		}
		n, err := m.claim(ctx)
		switch {
		case err != nil:
		case n == 0 && !m.limited.IsZero():
			m.awaitLimit(ctx)
		case n == 0 || !m.more:
			err = m.idle(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, fdbmodel.ErrReaped) || isFatal(err):
			return err
		case err != nil:
			m.worker.options.Logger.Warn("claim failed; retrying", "error", err)
			m.pause(ctx, wait)
			wait = min(2*wait, claimWaitMax)
		default:
			wait = claimWaitMin
		}
	}
}

func (m *membership) pause(ctx context.Context, d time.Duration) {
	clk := m.worker.cluster.Clock()
	_ = clock.Sleep(ctx, clk, d) // the caller asks ctx
}

// awaitLimit waits until more futures may run in the cluster, or for the time to ask
// again. The caller asks ctx.
func (m *membership) awaitLimit(ctx context.Context) {
	timer := m.worker.cluster.Clock().At(m.limited)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-quota.Of(m.worker.cluster).ClaimEnded():
	case <-ctx.Done():
	}
}

// claim waits until there is room, claims as many futures as fit, and returns
// how many.
func (m *membership) claim(ctx context.Context) (int, error) {
	request, ok := m.request()
	if !ok {
		if err := m.reg.LeaveIdleRing(ctx); err != nil {
			return 0, err
		}
	}
	for !ok {
		select {
		case <-m.worker.slots.hungry:
		case <-ctx.Done():
			return 0, nil
		}
		request, ok = m.request()
	}
	return m.takeNext(ctx, request)
}

// request says what to claim now, and false for nothing.
func (m *membership) request() (fdbmodel.ClaimRequest, bool) {
	// Set before the look at the backlog: a completion after that look sees it.
	m.backlogged.Store(true)
	if m.endings.backlog() > maxEnded {
		return fdbmodel.ClaimRequest{}, false
	}
	m.backlogged.Store(false)
	if m.worker.paused.Load() {
		return fdbmodel.ClaimRequest{}, false
	}
	request := m.worker.slots.request(m.runs)
	if y, ok := m.worker.options.Remote.(Deferrer); ok {
		request.Defers = y.Defers
	}
	if m.kept != nil {
		m.fitStore(&request)
	}
	return request, request.Max > 0
}

func (m *membership) claimNow(ctx context.Context, request fdbmodel.ClaimRequest) (int, error) {
	may, again, err := quota.Of(m.worker.cluster).MayClaim(ctx, request.Max)
	if m.limited = again; err != nil || may == 0 {
		return 0, err
	}
	request.Max = may
	answer, err := m.reg.Claim(ctx, request)
	for _, j := range m.worker.slots.admit(m, answer.Futures, false) {
		j.relinquish()
	}
	m.worker.slots.watchHeld()
	m.worker.stats.conflicts.Add(int64(answer.Conflicts))
	if answer.Hinted {
		m.worker.stats.hinted.Add(1)
	}
	if err != nil || len(answer.Futures) == 0 {
		return 0, err
	}
	m.misses, m.more = 0, answer.More || len(answer.Futures) == request.Max
	m.worker.stats.claims.Add(1)
	return len(answer.Futures), nil
}

// idle waits until there may be work. No submit falls between its registration
// and the look before it.
func (m *membership) idle(ctx context.Context) error {
	request, ok := m.request()
	if !ok {
		return nil
	}
	hint := m.reg.RequestHint(request)
	defer hint.Cancel()
	// EnterIdleRing is the last look where the worker goes idle in the store at once.
	if kv.TraitsOf(m.worker.cluster.Database()).Exclusive {
		if hint.Missed() {
			if n, err := m.claimNow(ctx, request); n > 0 || err != nil {
				return err
			}
		}
		clk := m.worker.cluster.Clock()
		delay := clk.At(clk.Now().Add(ringDelay))
		defer delay.Stop()
		select {
		case <-delay.C():
		case <-hint.C():
			return nil
		case <-m.worker.slots.hungry:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	watch, err := m.reg.EnterIdleRing(ctx, request)
	if err != nil {
		return err
	}
	if watch == nil {
		// A future came meanwhile, or the last claim did not find it.
		if m.misses++; m.misses > maxMisses {
			m.pause(ctx, ringDelay)
		}
		return nil
	}
	defer watch.Cancel()
	// The claim that follows takes the worker out of the ring.
	return m.rest(ctx, request, watch, hint)
}

// rest waits until the worker is woken, has other room than in request, or sees
// by itself that there may be work. Where the store has no room for the watch, it
// waits for a poll at most, so that the worker asks for one again.
func (m *membership) rest(ctx context.Context, request fdbmodel.ClaimRequest, watch kv.Watch,
	hint *fdbmodel.HintRequest,
) error {
	clk, woken := m.worker.cluster.Clock(), watch.Done()
	look, since := m.reg.Poll, clk.Now()
	for {
		every, fewer := m.worker.options.Poll, (<-chan struct{})(nil)
		if fleet := m.worker.options.Fleet; fleet != nil {
			look = m.reg.PollAll
			every, fewer = fleet.pollEvery(every)
		}
		poll := clk.At(since.Add(m.jittered(every)))
		again, stopAgain := m.leftUntil()
		select {
		case <-again:
		case <-poll.C():
			stopAgain()
			if found, err := look(ctx, request); found || err != nil || woken == nil {
				return err
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
		case <-hint.C():
		case <-m.worker.slots.hungry:
		case <-ctx.Done():
		}
		poll.Stop()
		stopAgain()
		return nil
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
