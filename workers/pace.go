package workers

import (
	"sync"
	"time"

	"github.com/futura-run/futura/internal/clock"
)

// maxPaces bounds the keys that are remembered; those whose time has come are
// forgotten first.
const maxPaces = 10_000

// paces says when the next future of each key may start.
type paces struct {
	clock clock.Clock
	mu    sync.Mutex
	next  map[string]time.Time
}

// reserve makes a job due when its pace lets it start.
func (p *paces) reserve(j *job) {
	if j.future.Spec == nil || j.future.Spec.Pace == nil {
		return
	}
	pace := j.future.Spec.Pace
	now := p.clock.Now()
	gap := time.Duration(float64(time.Second) / pace.PerSecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = map[string]time.Time{}
	}
	if len(p.next) >= maxPaces {
		for key, at := range p.next {
			if at.Before(now) {
				delete(p.next, key)
			}
		}
	}
	at := p.next[pace.Key]
	if at.Before(now) {
		at = now
	}
	p.next[pace.Key] = at.Add(max(gap, 0))
	j.due = at
}

// awaitTurn waits until the job is due, and reports whether it is still wanted
// then. The wait is not part of the attempt.
func (w *Worker) awaitTurn(j *job) bool {
	clk := w.cluster.Clock()
	return !clk.Now().Before(j.due) || clock.Wait(j.ctx, clk, j.due) == nil
}
