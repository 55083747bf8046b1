package workers

import (
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
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

// reserve returns how long a future has to wait before it starts.
func (p *paces) reserve(pace *layout.Pace) time.Duration {
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
	return at.Sub(now)
}

// waitPace waits until the future may start, and tells whether it is still
// wanted then. The wait is not part of the attempt.
func (w *Worker) waitPace(j *job) bool {
	spec := j.future.Spec
	if spec.Pace == nil || w.options.Manual {
		return true
	}
	if wait := w.paces.reserve(spec.Pace); wait > 0 {
		clk := w.cluster.Clock()
		timer := clk.At(clk.Now().Add(wait))
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-j.ctx.Done():
			return false
		}
	}
	j.started = w.cluster.Now()
	if spec.Timeout > 0 {
		j.deadline = j.started.Add(spec.Timeout)
	}
	return true
}
