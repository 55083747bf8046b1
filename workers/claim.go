package workers

import (
	"context"
	"errors"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
)

// ringDelay is how long a worker on a store of its own process waits for the
// process's own hint before it registers as idle in the store.
const ringDelay = 50 * time.Millisecond

// claimLoop claims when the queue runs low, and waits when there is nothing.
func (l *life) claimLoop(ctx context.Context) error {
	for {
		l.waitHungry(ctx)
		n, err := l.claim(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !kv.Retryable(err):
			return err
		case n == 0:
			if err := l.idle(ctx); err != nil {
				return err
			}
		}
	}
}

// waitHungry returns when there is room for more.
func (l *life) waitHungry(ctx context.Context) {
	for l.want() == 0 {
		select {
		case <-l.hungry:
		case <-ctx.Done():
			return
		}
	}
}

// want is how many futures to claim now: enough to refill what may wait, once
// half of that has gone.
func (l *life) want() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing {
		return 0
	}
	ahead := l.ahead()
	room := max(0, l.free.Slots) + ahead - len(l.queue)
	if len(l.queue) > ahead/2 || room <= 0 {
		return 0
	}
	return min(room, fdbmodel.MaxClaim)
}

// claim takes what there is and room for, and returns how many.
func (l *life) claim(ctx context.Context) (int, error) {
	n := l.want()
	if n == 0 {
		return 0, nil
	}
	answer, err := l.reg.Claim(ctx, l.request(n))
	l.worker.stats.conflicts.Add(int64(answer.Conflicts))
	if err != nil || len(answer.Futures) == 0 {
		return 0, err
	}
	l.worker.stats.claims.Add(1)
	now := l.worker.cluster.Now()
	l.mu.Lock()
	closing := l.closing
	if !closing {
		for i := range answer.Futures {
			l.queue = append(l.queue, &job{future: answer.Futures[i], claimed: now})
		}
	}
	l.mu.Unlock()
	if closing {
		for i := range answer.Futures {
			l.put(fdbmodel.Completion{Future: &answer.Futures[i], Relinquish: true})
		}
		return 0, nil
	}
	if len(answer.Futures) > 1 {
		l.wake.Broadcast()
	} else {
		l.wake.Signal()
	}
	return len(answer.Futures), nil
}

// request says what is free: what waits in the queue counts as used.
func (l *life) request(n int) fdbmodel.ClaimRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := l.free
	for _, j := range l.queue {
		free = free.Take(j.requirements())
	}
	free.Slots = n
	return fdbmodel.ClaimRequest{Free: free, Max: n}
}

// idle waits until there may be work. It registers before it looks for the last
// time, so that no submit falls in between.
func (l *life) idle(ctx context.Context) error {
	hint := l.worker.cluster.Idle(l.worker.options.Queues)
	defer hint.Cancel()
	if n, err := l.claim(ctx); n > 0 || err != nil {
		return l.harmless(ctx, err)
	}
	clk := l.worker.cluster.Clock()
	poll := clk.At(clk.Now().Add(l.jittered(l.worker.options.Poll)))
	defer poll.Stop()
	if _, local := l.worker.cluster.Database().(kv.Local); local {
		delay := clk.At(clk.Now().Add(ringDelay))
		defer delay.Stop()
		select {
		case <-hint.C():
			return nil
		case <-l.hungry:
			return nil
		case <-poll.C():
			return nil
		case <-ctx.Done():
			return nil
		case <-delay.C():
		}
	}
	watch, err := l.reg.GoIdle(ctx, l.request(max(1, l.want())))
	if err != nil || watch == nil {
		return l.harmless(ctx, err)
	}
	defer watch.Cancel()
	select {
	case <-watch.Done():
	case <-hint.C():
	case <-l.hungry:
	case <-poll.C():
	case <-ctx.Done():
	}
	if ctx.Err() == nil {
		return l.harmless(ctx, l.reg.LeaveIdle(ctx))
	}
	return nil
}

// harmless drops the errors that another round cures.
func (l *life) harmless(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || kv.Retryable(err) {
		return nil
	}
	return err
}

// jittered spreads d by a quarter to each side, by the worker's id: a fleet
// does not poll in step.
func (l *life) jittered(d time.Duration) time.Duration {
	id := l.reg.ID()
	spread := time.Duration(id[len(id)-1]%16) * d / 32
	return d - d/4 + spread
}

// beatLoop says that the worker lives, passes on cancels, and gives back what
// has waited too long behind long functions.
func (l *life) beatLoop(ctx context.Context) error {
	clk := l.worker.cluster.Clock()
	for {
		timer := clk.At(clk.Now().Add(l.worker.cluster.Config().Heartbeat))
		select {
		case id := <-l.reg.Cancels():
			l.cancel(id)
		case <-timer.C():
			if l.worker.vanished() {
				timer.Stop()
				return nil
			}
			if err := l.beat(ctx); errors.Is(err, fdbmodel.ErrReaped) {
				timer.Stop()
				return err
			} else if err != nil && ctx.Err() == nil {
				l.worker.options.Logger.Warn("heartbeat is retried", "error", err)
				if !kv.Retryable(err) {
					timer.Stop()
					return err
				}
			}
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

func (l *life) beat(ctx context.Context) error {
	l.mu.Lock()
	free, running := l.free, len(l.running)
	l.mu.Unlock()
	cancelled, err := l.reg.Heartbeat(ctx, free, running)
	for _, id := range cancelled {
		l.cancel(id)
	}
	if err == nil {
		l.giveBackStale()
	}
	return err
}

// cancel ends a future here that somebody wants no more.
func (l *life) cancel(id fdbmodel.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if j := l.running[id]; j != nil {
		j.cancel(ErrCancelled)
		return
	}
	for i, j := range l.queue {
		if j.future.ID == id {
			l.queue = append(l.queue[:i], l.queue[i+1:]...)
			// Whatever ends the claim ends the future as cancelled.
			l.put(fdbmodel.Completion{Future: &j.future, Relinquish: true})
			return
		}
	}
}

// giveBackStale relinquishes what has waited for a slot for a heartbeat.
func (l *life) giveBackStale() {
	limit := l.worker.cluster.Now().Add(-l.worker.cluster.Config().Heartbeat)
	l.mu.Lock()
	kept := l.queue[:0]
	var stale []*job
	for _, j := range l.queue {
		if j.claimed.Before(limit) {
			stale = append(stale, j)
		} else {
			kept = append(kept, j)
		}
	}
	l.queue = kept
	l.mu.Unlock()
	for _, j := range stale {
		l.put(fdbmodel.Completion{Future: &j.future, Relinquish: true})
	}
}
