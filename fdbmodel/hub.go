package fdbmodel

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// hub wakes idle workers of this process without the store. It is a hint: a
// worker that misses it finds the work the next time it looks.
type hub struct {
	mu      sync.Mutex
	hints   uint64 // how often this process had work for a worker
	idle    map[string][]*HintRequest
	workers map[layout.WorkerID]*HintRequest
	cancels map[layout.WorkerID]chan layout.ID
}

func newHub() *hub {
	return &hub{idle: map[string][]*HintRequest{}, workers: map[layout.WorkerID]*HintRequest{},
		cancels: map[layout.WorkerID]chan layout.ID{}}
}

// maxCancelHints is the maximum number of hints that a worker has not received
// yet.
const maxCancelHints = 64

// openCancels adds a channel for hints about a worker's cancelled futures;
// closeCancels removes it.
func (h *hub) openCancels(w layout.WorkerID) <-chan layout.ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := make(chan layout.ID, maxCancelHints)
	h.cancels[w] = c
	return c
}

func (h *hub) closeCancels(w layout.WorkerID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.cancels, w)
}

// hintCancel hints to a worker that a future is to be cancelled.
func (h *hub) hintCancel(w layout.WorkerID, id layout.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case h.cancels[w] <- id:
	default:
	}
}

// hint is what a worker was woken for.
type hint struct {
	shard int    // of the futures
	count uint64 // of the hub's hints, with this one
	far   bool   // it came from another process
}

// HintRequest is a worker's request to be woken within its process.
type HintRequest struct {
	hub    *hub
	worker layout.WorkerID
	queues []string
	fits   func(demand) bool
	missed bool
	last   bool                  // it is woken after the others
	heard  *atomic.Pointer[hint] // receives what the worker is woken for
	paced  time.Time             // before it the worker heeds no hints of other processes
	c      chan struct{}
}

// RequestHint registers a worker that has nothing to do, for the futures that
// it could claim by req. If it reports that a hint was missed, the worker must
// look for work once more before it waits.
func (r *Registration) RequestHint(req ClaimRequest) *HintRequest {
	runs, free, labels, noObjects, h := r.runs(req.Runs), req.Free, r.labels, req.noObjects(), r.cluster.hub
	name := r.name()
	i := &HintRequest{
		hub: h, worker: r.info.ID, heard: &r.hinted, queues: r.queues(), paced: r.pace.Next(), last: req.Last,
		c: make(chan struct{}, 1),
		fits: func(d demand) bool {
			return !d.refusedBy(name) && free.Fit(d.requirements()) && !(d.object && noObjects) &&
				labels.Have(d.labels) && runs(d.function)
		},
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	i.missed = h.hints != r.heard
	for _, q := range i.queues {
		h.idle[q] = append(h.idle[q], i)
	}
	h.workers[i.worker] = i
	return i
}

// Missed reports whether this process had work for some worker between the
// beginning of the worker's last Claim, or the hint that the Claim followed, and
// its call of RequestHint.
func (i *HintRequest) Missed() bool { return i.missed }

// C receives one value when there may be work.
func (i *HintRequest) C() <-chan struct{} { return i.c }

// Cancel withdraws the request. It may be called more than once.
func (i *HintRequest) Cancel() {
	i.hub.mu.Lock()
	defer i.hub.mu.Unlock()
	i.hub.remove(i)
}

// heard returns how often this process had work for a worker.
func (h *hub) heard() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hints
}

// wake wakes up to n suitable workers, the most recent first, those that come last
// after the others and the one that failed them at the end, and returns how many.
func (h *hub) wake(d demand, n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hints++
	woken := h.wakeFrom(d, n, false, func(i *HintRequest) bool { return i.worker != d.failedOn && !i.last })
	if woken < n {
		woken += h.wakeFrom(d, n-woken, false, func(i *HintRequest) bool { return i.worker != d.failedOn })
	}
	if woken < n && d.failedOn != "" {
		woken += h.wakeFrom(d, n-woken, false, func(*HintRequest) bool { return true })
	}
	return woken
}

// wakeFar wakes up to n suitable workers because another process hints at futures, and
// returns how many. Who is about to wait looks again.
func (h *hub) wakeFar(d demand, n int, now time.Time) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hints++
	return h.wakeFrom(d, n, true, func(i *HintRequest) bool { return !now.Before(i.paced) })
}

// wakeNear wakes the worker that futures are left to, and reports whether it did.
func (h *hub) wakeNear(d demand) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hints++
	return h.wakeFrom(d, 1, false, func(i *HintRequest) bool { return i.worker == d.near }) > 0
}

// wakeFrom wakes up to n suitable workers of those that among accepts. far says that
// another process asks for it.
func (h *hub) wakeFrom(d demand, n int, far bool, among func(*HintRequest) bool) (woken int) {
	for at := len(h.idle[d.queue]) - 1; at >= 0 && woken < n; at-- {
		i := h.idle[d.queue][at]
		if !among(i) || !i.fits(d) {
			continue
		}
		h.remove(i)
		i.heard.Store(&hint{shard: d.shard, count: h.hints, far: far})
		i.c <- struct{}{}
		woken++
	}
	return woken
}

// wakeAll wakes all idle workers: there may be work for any of them.
func (h *hub) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hints++
	for _, i := range h.workers {
		h.remove(i)
		i.c <- struct{}{}
	}
}

// wakeWorker wakes one worker, if it is idle.
func (h *hub) wakeWorker(w layout.WorkerID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hints++
	if i := h.workers[w]; i != nil {
		h.remove(i)
		i.c <- struct{}{}
	}
}

func (h *hub) remove(i *HintRequest) {
	if h.workers[i.worker] == i {
		delete(h.workers, i.worker)
	}
	for _, q := range i.queues {
		list := h.idle[q]
		for at, other := range list {
			if other == i {
				list = append(list[:at], list[at+1:]...)
				break
			}
		}
		if len(list) == 0 {
			delete(h.idle, q)
		} else {
			h.idle[q] = list
		}
	}
}
