// Package notify wakes idle workers. Within a process a worker is woken by a hint in memory, in
// other processes by a hint that a Hinter passes on, or through the store, by a write to its
// wake key; the idle ring says which workers are idle. All of it is best effort: a worker that
// misses a hint finds the work the next time it looks.
package notify

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Notifier wakes the idle workers of a cluster. Its methods may be called from many goroutines.
type Notifier struct {
	db     kv.Database
	keys   layout.Keyspace
	now    func() time.Time
	random func(n int) int

	mu      sync.Mutex
	hints   uint64 // how often this process had work for a worker
	idle    map[string][]*Request
	workers map[layout.WorkerID]*Request
	cancels map[layout.WorkerID]chan layout.ID
	hinters []Hinter // of which the first is used

	backgrounds []*background // of which the first is used
	searching   bool          // in the background
	next        search        // that follows it
}

// New returns the notifier of a cluster, with its clock, and its source of random numbers below
// one.
func New(db kv.Database, keys layout.Keyspace, now func() time.Time, random func(n int) int) *Notifier {
	return &Notifier{db: db, keys: keys, now: now, random: random, idle: map[string][]*Request{},
		workers: map[layout.WorkerID]*Request{}, cancels: map[layout.WorkerID]chan layout.ID{}}
}

// Wake wakes workers that can run the futures that entered the pool at version: first those
// that have what the futures take, then others within the process, then those of other
// processes: by hints, and what no worker heeds through the store. It takes those that a
// worker of the process looks for from placed.
func (n *Notifier) Wake(ctx context.Context, version kv.Version, placed Demands) {
	n.wakeNear(ctx, version, placed)
	for d, left := range placed {
		placed[d] = left - n.wakeHere(d, left)
	}
	if len(placed.queues()) > 0 {
		n.wakeOtherProcesses(ctx, version, placed)
	}
}

// wakeHere wakes up to most suitable workers of this process, the most recent first, those
// that come last after the others and the one that failed the futures at the end, and returns
// how many.
func (n *Notifier) wakeHere(d Demand, most int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hints++
	woken := n.wakeFrom(d, most, false, func(r *Request) bool { return r.worker.id != d.FailedOn && !r.want.Last })
	if woken < most {
		woken += n.wakeFrom(d, most-woken, false, func(r *Request) bool { return r.worker.id != d.FailedOn })
	}
	if woken < most && d.FailedOn != "" {
		woken += n.wakeFrom(d, most-woken, false, func(*Request) bool { return true })
	}
	return woken
}

// wakeNearHere wakes the worker that futures are left to, and reports whether it did.
func (n *Notifier) wakeNearHere(d Demand) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hints++
	return n.wakeFrom(d, 1, false, func(r *Request) bool { return r.worker.id == d.Near }) > 0
}

// wakeFrom wakes up to most suitable workers of those that among accepts. far says that
// another process asks for it.
func (n *Notifier) wakeFrom(d Demand, most int, far bool, among func(*Request) bool) (woken int) {
	for at := len(n.idle[d.Queue]) - 1; at >= 0 && woken < most; at-- {
		r := n.idle[d.Queue][at]
		if !among(r) || !r.want.fits(d) {
			continue
		}
		r.worker.woken.Store(&hint{shard: d.Shard, count: n.hints, far: far})
		n.call(r)
		woken++
	}
	return woken
}

// WakeAll wakes all idle workers of this process: there may be work for any of them.
func (n *Notifier) WakeAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hints++
	for _, r := range n.workers {
		n.call(r)
	}
}

// WakeWorker has a worker of this process, if it is idle, look at once for what it was assigned.
func (n *Notifier) WakeWorker(id layout.WorkerID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hints++
	if r := n.workers[id]; r != nil {
		n.call(r)
	}
}

// HintCancel hints to a worker of this process that a future is to be cancelled.
func (n *Notifier) HintCancel(id layout.WorkerID, future layout.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case n.cancels[id] <- future:
	default:
	}
}

func (n *Notifier) call(r *Request) {
	n.remove(r)
	r.c <- struct{}{}
}

func (n *Notifier) remove(r *Request) {
	if n.workers[r.worker.id] == r {
		delete(n.workers, r.worker.id)
	}
	for _, q := range r.want.Queues {
		list := n.idle[q]
		if at := slices.Index(list, r); at >= 0 {
			list = slices.Delete(list, at, at+1)
		}
		if len(list) == 0 {
			delete(n.idle, q)
		} else {
			n.idle[q] = list
		}
	}
}
