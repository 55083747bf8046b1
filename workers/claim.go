package workers

import (
	"context"
	"errors"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/internal/clock"
)

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
	if err != nil {
		return 0, err
	}
	if len(answer.Futures) == 0 {
		if m.reg.FoundOnlyOthers() {
			m.worker.slots.foundNone()
		}
		return 0, nil
	}
	m.misses, m.more = 0, answer.More || len(answer.Futures) == request.Max
	m.worker.stats.claims.Add(1)
	return len(answer.Futures), nil
}
