package workers

import (
	"context"
	"errors"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/away"
)

// staleAfter bounds how long a claimed future waits for a slot, a heartbeat
// otherwise: others may be free to run it.
const staleAfter = time.Second

// beatLoop sends the worker's heartbeat, passes on cancels, and gives back
// futures that have waited too long behind long functions.
func (m *membership) beatLoop(ctx context.Context) error {
	clk := m.worker.cluster.Clock()
	patience := min(m.worker.cluster.Config().Heartbeat, staleAfter)
	beatAt := m.nextBeat(clk.Now())
	lookAt := clk.Now().Add(patience)
	for {
		next := beatAt
		if lookAt.Before(next) {
			next = lookAt
		}
		timer := clk.At(next)
		select {
		case id := <-m.reg.Cancels():
			m.cancel(id)
		case <-m.drains:
			beatAt = clk.Now()
		case <-timer.C():
		case <-ctx.Done():
		}
		timer.Stop()
		if m.worker.freeze.wait(ctx) != nil || ctx.Err() != nil {
			return nil
		}
		now := clk.Now()
		if !now.Before(lookAt) {
			lookAt = now.Add(patience)
			m.giveBackStale(now.Add(-patience))
			m.worker.slots.losePatience()
			m.worker.failures.pass(false)
			m.worker.warnOfStall(now)
		}
		if now.Before(beatAt) {
			continue
		}
		beatAt = m.nextBeat(now)
		if err := m.worker.away.Await(ctx, m.worker.silence(), m.beat); errors.Is(err, fdbmodel.ErrReaped) || isFatal(err) {
			return err
		} else if err != nil && ctx.Err() == nil {
			m.worker.options.Logger.Warn("heartbeat failed; retrying", "error", err)
		}
	}
}

// silence is how long a heartbeat is open before the log has it: well before others may declare the worker dead.
func (w *Worker) silence() time.Duration {
	config := w.cluster.Config()
	return min(away.PatienceOf(config.Heartbeat), max(config.Heartbeat, config.DeadAfter*2/3))
}

// nextBeat is when the next heartbeat is due.
func (m *membership) nextBeat(now time.Time) time.Time {
	config, fleet := m.worker.cluster.Config(), m.worker.options.Fleet
	if fleet == nil {
		return now.Add(config.Heartbeat)
	}
	every := config.Heartbeat
	if _, running, waiting := m.worker.slots.status(); running+waiting == 0 {
		every = max(every, 2*config.DeadAfter/idleBeats)
	}
	return fleet.nextBeat(now, every, m.reg.ID())
}

// maxFull bounds the names in a heartbeat.
const maxFull = 100

func (m *membership) beat(ctx context.Context) error {
	free, running, _ := m.worker.slots.status()
	awaiting, full := m.worker.slots.awaits()
	beat := layout.Heartbeat{Free: free, Running: running, Awaiting: awaiting, Full: full[:min(len(full), maxFull)],
		Draining: m.closing.Load(), Awaits: m.worker.slots.awaited(m)}
	if m.kept != nil {
		m.kept.tell(&beat)
	}
	write := m.reg.Heartbeat
	if fleet := m.worker.options.Fleet; fleet != nil && !m.worker.manual() {
		write = func(ctx context.Context, beat layout.Heartbeat) ([]layout.ID, error) {
			return fleet.beat(ctx, m.reg, beat)
		}
	}
	cancelled, err := write(ctx, beat)
	for _, id := range cancelled {
		m.cancel(id)
	}
	if err == nil {
		m.lookForCircles(beat.Awaits)
	}
	return err
}

// cancel stops a cancelled future on this worker. However its claim ends, the
// future ends as cancelled.
func (m *membership) cancel(id layout.ID) {
	if j := m.worker.slots.cancel(id); j != nil {
		j.relinquish()
	}
}

// giveBackStale gives back the futures that have waited for a slot since before
// limit.
func (m *membership) giveBackStale(limit time.Time) {
	for _, j := range m.worker.slots.stale(limit) {
		j.relinquish()
	}
}
