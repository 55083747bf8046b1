package peerhead

import (
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/clock"
)

// Bounds of values that were cut off. Each has up to 1 MB in memory, and the rest in the
// store, until it is swept there.
const (
	maxParts = 32
	partFor  = 10 * time.Minute
)

// parts are values of which some has come, for the next attempt to fetch them.
type parts struct {
	clock clock.Clock

	mu sync.Mutex
	by map[partName]part
}

// partName names a content for a future.
type partName struct {
	id   layout.ID
	blob string
}

type part struct {
	upload *results.Upload
	at     time.Time
}

// put keeps what has come, instead of the oldest one if there are too many.
func (p *parts) put(name partName, u *results.Upload) {
	if u.Written() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.by[name] = part{u, p.clock.Now()}
	if len(p.by) <= maxParts {
		return
	}
	oldest := name
	for n, other := range p.by {
		if other.at.Before(p.by[oldest].at) {
			oldest = n
		}
	}
	delete(p.by, oldest)
}

// take returns what has come, nil for nothing, and keeps it no longer.
func (p *parts) take(name partName) *results.Upload {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.by[name].upload
	delete(p.by, name)
	return u
}

// sweep drops what is too old.
func (p *parts) sweep(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, one := range p.by {
		if now.Sub(one.at) >= partFor {
			delete(p.by, n)
		}
	}
}
