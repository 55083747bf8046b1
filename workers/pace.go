package workers

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/internal/clock"
)

const (
	// fewPaces is how many keys are remembered without a look at which of them may be forgotten.
	fewPaces = 10_000
	// Of a pace that the cluster keeps, a worker reserves at once what it could start
	// in reserveFor, and at most maxReserved starts.
	reserveFor  = 250 * time.Millisecond
	maxReserved = 100
)

// paces says when the next future of each key may start.
type paces struct {
	clock   clock.Clock
	cluster *fdbmodel.Cluster
	mu      sync.Mutex
	next    book[time.Time]
	shared  book[*reserved]
}

// book has what is remembered of each key. It is swept when it has twice as many keys as the last sweep left, so that
// a key costs the same however many there are.
type book[T any] struct {
	keys map[string]T
	full int // how many keys it has when it is swept
}

// sweep makes room for a key: it forgets what is over.
func (b *book[T]) sweep(isOver func(T) bool) {
	if b.keys == nil {
		b.keys, b.full = map[string]T{}, fewPaces
	}
	if len(b.keys) < b.full {
		return
	}
	maps.DeleteFunc(b.keys, func(_ string, of T) bool { return isOver(of) })
	b.full = max(2*len(b.keys), fewPaces)
}

// reserved are starts at a pace of the cluster that are this worker's.
type reserved struct {
	turn  chan struct{} // has an element while a call uses the rest
	next  time.Time
	gap   time.Duration
	count int
}

// reserve makes a job due when its pace lets it start. A job whose pace the cluster
// could not be asked for is unpaced: it may not start.
func (p *paces) reserve(j *job) {
	if j.future.Spec == nil || j.future.Spec.Pace == nil {
		return
	}
	pace := j.future.Spec.Pace
	if !pace.Shared {
		j.due = p.reserveOwn(pace)
		return
	}
	due, err := p.sharedOf(pace.Key).take(j.ctx, p, pace)
	if j.unpaced = err; err == nil {
		j.due = due
	}
}

// reserveOwn returns the next start at a pace of this worker alone.
func (p *paces) reserveOwn(pace *layout.Pace) time.Time {
	now := p.clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next.sweep(func(at time.Time) bool { return at.Before(now) })
	at := p.next.keys[pace.Key]
	if at.Before(now) {
		at = now
	}
	p.next.keys[pace.Key] = at.Add(pace.Gap())
	return at
}

// sharedOf returns what is reserved of a pace of the cluster.
func (p *paces) sharedOf(key string) *reserved {
	now := p.clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shared.sweep(func(r *reserved) bool { return r.isOver(now) })
	r := p.shared.keys[key]
	if r == nil {
		r = &reserved{turn: make(chan struct{}, 1)}
		p.shared.keys[key] = r
	}
	return r
}

// isOver reports whether nothing that is reserved can be used any more.
func (r *reserved) isOver(now time.Time) bool {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	default:
		return false
	}
	return r.count == 0 || r.next.Add(time.Duration(r.count)*r.gap).Before(now)
}

// take returns the next start, or ctx's error if that ends before. One that is late by a gap is left out: those that
// gathered while there was nothing to start would be a burst.
func (r *reserved) take(ctx context.Context, p *paces, pace *layout.Pace) (time.Time, error) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
	gap, now := pace.Gap(), p.clock.Now()
	for r.count > 0 && !r.next.Add(r.gap).After(now) {
		r.next, r.count = r.next.Add(r.gap), r.count-1
	}
	if r.count == 0 || r.gap != gap {
		n := min(max(int(reserveFor.Seconds()*min(pace.PerSecond, 1e6)), 1), maxReserved)
		first, err := quota.Of(p.cluster).ReservePace(ctx, pace, n)
		if err != nil {
			return time.Time{}, err
		}
		r.next, r.gap, r.count = first, gap, n
	}
	due := r.next
	r.next, r.count = r.next.Add(r.gap), r.count-1
	return due, nil
}

// awaitTurn waits until the job is due, and reports whether it is still wanted
// then. The wait is not part of the attempt.
func (w *Worker) awaitTurn(j *job) bool {
	if j.unpaced != nil {
		if j.ctx.Err() == nil {
			w.rare.Warn("the pace of a future can't be read; giving it back", "future", j.future.ID,
				"error", j.unpaced)
		}
		return false
	}
	clk := w.cluster.Clock()
	return !clk.Now().Before(j.due) || clock.Wait(j.ctx, clk, j.due) == nil
}
