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
func (l *life) claimLoop(ctx context.Context) error {
	for wait := claimWaitMin; ; {
		if l.worker.gate.pass(ctx) != nil {
			return nil
		}
		n, err := l.claim(ctx)
		switch {
		case err != nil:
		case n == 0 && !l.limited.IsZero():
			l.awaitLimit(ctx)
		case n == 0 || !l.more:
			err = l.idle(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, fdbmodel.ErrReaped) || isFatal(err):
			return err
		case err != nil:
			l.worker.options.Logger.Warn("claim failed; retrying", "error", err)
			l.pause(ctx, wait)
			wait = min(2*wait, claimWaitMax)
		default:
			wait = claimWaitMin
		}
	}
}

func (l *life) pause(ctx context.Context, d time.Duration) {
	clk := l.worker.cluster.Clock()
	_ = clock.Sleep(ctx, clk, d) // the caller asks ctx
}

// awaitLimit waits until more futures may run in the cluster, or for the time to ask
// again. The caller asks ctx.
func (l *life) awaitLimit(ctx context.Context) {
	timer := l.worker.cluster.Clock().At(l.limited)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-quota.Of(l.worker.cluster).ClaimEnded():
	case <-ctx.Done():
	}
}

// claim waits until there is room, claims as many futures as fit, and returns
// how many.
func (l *life) claim(ctx context.Context) (int, error) {
	request, ok := l.request()
	if !ok {
		if err := l.reg.LeaveIdleRing(ctx); err != nil {
			return 0, err
		}
	}
	for !ok {
		select {
		case <-l.worker.slots.hungry:
		case <-ctx.Done():
			return 0, nil
		}
		request, ok = l.request()
	}
	return l.takeNext(ctx, request)
}

// request says what to claim now, and false for nothing.
func (l *life) request() (fdbmodel.ClaimRequest, bool) {
	// Set before the look at the backlog: a completion after that look sees it.
	l.backlogged.Store(true)
	if l.endings.backlog() > maxEnded {
		return fdbmodel.ClaimRequest{}, false
	}
	l.backlogged.Store(false)
	if l.worker.paused.Load() {
		return fdbmodel.ClaimRequest{}, false
	}
	request := l.worker.slots.request(l.runs)
	if l.kept != nil {
		l.fitStore(&request)
	}
	return request, request.Max > 0
}

func (l *life) claimNow(ctx context.Context, request fdbmodel.ClaimRequest) (int, error) {
	may, again, err := quota.Of(l.worker.cluster).MayClaim(ctx, request.Max)
	if l.limited = again; err != nil || may == 0 {
		return 0, err
	}
	request.Max = may
	answer, err := l.reg.Claim(ctx, request)
	for _, j := range l.worker.slots.admit(l, answer.Futures, false) {
		j.relinquish()
	}
	l.worker.slots.watchHeld()
	l.worker.stats.conflicts.Add(int64(answer.Conflicts))
	if answer.Hinted {
		l.worker.stats.hinted.Add(1)
	}
	if err != nil || len(answer.Futures) == 0 {
		return 0, err
	}
	l.misses, l.more = 0, answer.More || len(answer.Futures) == request.Max
	l.worker.stats.claims.Add(1)
	return len(answer.Futures), nil
}

// idle waits until there may be work. No submit falls between its registration
// and the look before it.
func (l *life) idle(ctx context.Context) error {
	request, ok := l.request()
	if !ok {
		return nil
	}
	hint := l.reg.RequestHint(request)
	defer hint.Cancel()
	// EnterIdleRing is the last look where the worker goes idle in the store at once.
	if kv.TraitsOf(l.worker.cluster.Database()).Exclusive {
		if hint.Missed() {
			if n, err := l.claimNow(ctx, request); n > 0 || err != nil {
				return err
			}
		}
		clk := l.worker.cluster.Clock()
		delay := clk.At(clk.Now().Add(ringDelay))
		defer delay.Stop()
		select {
		case <-delay.C():
		case <-hint.C():
			return nil
		case <-l.worker.slots.hungry:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	watch, err := l.reg.EnterIdleRing(ctx, request)
	if err != nil {
		return err
	}
	if watch == nil {
		// A future came meanwhile, or the last claim did not find it.
		if l.misses++; l.misses > maxMisses {
			l.pause(ctx, ringDelay)
		}
		return nil
	}
	defer watch.Cancel()
	// The claim that follows takes the worker out of the ring.
	return l.rest(ctx, request, watch, hint)
}

// rest waits until the worker is woken, has other room than in request, or sees
// by itself that there may be work. Where the store has no room for the watch, it
// waits for a poll at most, so that the worker asks for one again.
func (l *life) rest(ctx context.Context, request fdbmodel.ClaimRequest, watch kv.Watch, hint *fdbmodel.HintRequest,
) error {
	clk, woken := l.worker.cluster.Clock(), watch.Done()
	look, since := l.reg.Poll, clk.Now()
	for {
		every, fewer := l.worker.options.Poll, (<-chan struct{})(nil)
		if fleet := l.worker.options.Fleet; fleet != nil {
			look = l.reg.PollAll
			every, fewer = fleet.pollEvery(every)
		}
		poll := clk.At(since.Add(l.jittered(every)))
		again, stopAgain := l.leftUntil()
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
		case <-l.worker.slots.hungry:
		case <-ctx.Done():
		}
		poll.Stop()
		stopAgain()
		return nil
	}
}

// leftUntil returns a channel that receives once the worker may take futures that it
// left to others, and how to end that.
func (l *life) leftUntil() (<-chan time.Time, func()) {
	at := l.reg.LeftUntil()
	if at.IsZero() {
		return nil, func() {}
	}
	timer := l.worker.cluster.Clock().At(at)
	return timer.C(), func() { timer.Stop() }
}

// jittered spreads d by a quarter to each side, by the worker's id: a fleet
// does not poll in step.
func (l *life) jittered(d time.Duration) time.Duration {
	id := l.reg.ID()
	spread := time.Duration(id[len(id)-1]%16) * d / 32
	return d - d/4 + spread
}
