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
	interval := l.worker.cluster.Config().Heartbeat
	patience := min(interval, staleAfter)
	beatAt := clk.Now().Add(interval)
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
		beatAt = now.Add(interval)
		if err := l.beat(ctx); errors.Is(err, fdbmodel.ErrReaped) || isFatal(err) {
			return err
		} else if err != nil && ctx.Err() == nil {
			l.worker.options.Logger.Warn("heartbeat failed; retrying", "error", err)
		}
	}
}

// maxFull bounds the names in a heartbeat.
const maxFull = 100

func (l *life) beat(ctx context.Context) error {
	free, running, _ := l.worker.slots.status()
	awaiting, full := l.worker.slots.awaits()
	beat := layout.Heartbeat{Free: free, Running: running, Awaiting: awaiting, Full: full[:min(len(full), maxFull)]}
	if l.kept != nil {
		l.kept.tell(&beat)
	}
	cancelled, err := l.reg.Heartbeat(ctx, beat)
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
