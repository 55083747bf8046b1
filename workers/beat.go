package workers

import (
	"context"
	"errors"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// staleAfter bounds how long a claimed future waits for a slot, a heartbeat
// otherwise: others may be free to run it.
const staleAfter = time.Second

// beatLoop sends the worker's heartbeat, passes on cancels, and gives back
// futures that have waited too long behind long functions.
func (l *life) beatLoop(ctx context.Context) error {
	clk := l.worker.cluster.Clock()
	patience := min(l.worker.cluster.Config().Heartbeat, staleAfter)
	beatAt := l.nextBeat(clk.Now())
	lookAt := clk.Now().Add(patience)
	for {
		next := beatAt
		if lookAt.Before(next) {
			next = lookAt
		}
		timer := clk.At(next)
		select {
		case id := <-l.reg.Cancels():
			l.cancel(id)
		case <-l.drains:
			beatAt = clk.Now()
		case <-timer.C():
		case <-ctx.Done():
		}
		timer.Stop()
		if l.worker.gate.pass(ctx) != nil || ctx.Err() != nil {
			return nil
		}
		now := clk.Now()
		if !now.Before(lookAt) {
			lookAt = now.Add(patience)
			l.giveBackStale(now.Add(-patience))
			l.worker.slots.losePatience()
			l.worker.failures.pass(false)
			l.worker.warnOfStall(now)
		}
		if now.Before(beatAt) {
			continue
		}
		beatAt = l.nextBeat(now)
		if err := l.beat(ctx); errors.Is(err, fdbmodel.ErrReaped) || isFatal(err) {
			return err
		} else if err != nil && ctx.Err() == nil {
			l.worker.options.Logger.Warn("heartbeat failed; retrying", "error", err)
		}
	}
}

// nextBeat is when the next heartbeat is due.
func (l *life) nextBeat(now time.Time) time.Time {
	config, fleet := l.worker.cluster.Config(), l.worker.options.Fleet
	if fleet == nil {
		return now.Add(config.Heartbeat)
	}
	every := config.Heartbeat
	if _, running, waiting := l.worker.slots.status(); running+waiting == 0 {
		every = max(every, 2*config.DeadAfter/idleBeats)
	}
	return fleet.nextBeat(now, every, l.reg.ID())
}

// maxFull bounds the names in a heartbeat.
const maxFull = 100

func (l *life) beat(ctx context.Context) error {
	free, running, _ := l.worker.slots.status()
	awaiting, full := l.worker.slots.awaits()
	beat := layout.Heartbeat{Free: free, Running: running, Awaiting: awaiting, Full: full[:min(len(full), maxFull)],
		Draining: l.closing.Load()}
	if l.kept != nil {
		l.kept.tell(&beat)
	}
	write := l.reg.Heartbeat
	if fleet := l.worker.options.Fleet; fleet != nil && !l.worker.manual() {
		write = func(ctx context.Context, beat layout.Heartbeat) ([]layout.ID, error) {
			return fleet.beat(ctx, l.reg, beat)
		}
	}
	cancelled, err := write(ctx, beat)
	for _, id := range cancelled {
		l.cancel(id)
	}
	return err
}

// cancel stops a cancelled future on this worker. However its claim ends, the
// future ends as cancelled.
func (l *life) cancel(id layout.ID) {
	if j := l.worker.slots.cancel(id); j != nil {
		j.relinquish()
	}
}

// giveBackStale gives back the futures that have waited for a slot since before
// limit.
func (l *life) giveBackStale(limit time.Time) {
	for _, j := range l.worker.slots.stale(limit) {
		j.relinquish()
	}
}
