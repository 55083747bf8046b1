package fdbmodel

import (
	"sync"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// hub wakes idle workers of this process without the store. It is a hint: a
// worker that misses it finds the work the next time it looks.
type hub struct {
	mu      sync.Mutex
	idle    map[string][]*Idle
	workers map[layout.WorkerID]*Idle
	cancels map[layout.WorkerID]chan layout.ID
}

func newHub() *hub {
	return &hub{idle: map[string][]*Idle{}, workers: map[layout.WorkerID]*Idle{},
		cancels: map[layout.WorkerID]chan layout.ID{}}
}

// maxCancelHints is the maximum number of hints that a worker has not received
// yet.
const maxCancelHints = 64

// join adds a channel for a worker's hints; leave removes it.
func (h *hub) join(w layout.WorkerID) <-chan layout.ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := make(chan layout.ID, maxCancelHints)
	h.cancels[w] = c
	return c
}

func (h *hub) leave(w layout.WorkerID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.cancels, w)
}

// cancel hints to a worker that a future is to be cancelled.
func (h *hub) cancel(w layout.WorkerID, id layout.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case h.cancels[w] <- id:
	default:
	}
}

// Idle is a worker's request to be woken within its process.
type Idle struct {
	hub    *hub
	worker layout.WorkerID
	queues []string
	fits   func(demand) bool
	c      chan struct{}
}

// Idle registers a worker that has nothing to do, for the futures that it could
// claim by req. The worker must look for work once more after this and before
// it waits, so that no submit is missed in between.
func (r *Registration) Idle(req ClaimRequest) *Idle {
	runs, free, h := req.Runs, req.Free, r.cluster.hub
	if runs == nil {
		runs = r.info.Runs
	}
	i := &Idle{
		hub: h, worker: r.info.ID, queues: r.info.Queues, c: make(chan struct{}, 1),
		fits: func(d demand) bool { return free.Fit(d.requirements()) && runs(d.function) },
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, q := range i.queues {
		h.idle[q] = append(h.idle[q], i)
	}
	h.workers[i.worker] = i
	return i
}

// C receives one value when there may be work.
func (i *Idle) C() <-chan struct{} { return i.c }

// Cancel withdraws the request. It may be called more than once.
func (i *Idle) Cancel() {
	i.hub.mu.Lock()
	defer i.hub.mu.Unlock()
	i.hub.remove(i)
}

// wake wakes up to n suitable workers, the most recent first, and returns how
// many.
func (h *hub) wake(d demand, n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	woken := 0
	for at := len(h.idle[d.queue]) - 1; at >= 0 && woken < n; at-- {
		i := h.idle[d.queue][at]
		if !i.fits(d) {
			continue
		}
		h.remove(i)
		i.c <- struct{}{}
		woken++
	}
	return woken
}

// wakeWorker wakes one worker, if it is idle.
func (h *hub) wakeWorker(w layout.WorkerID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := h.workers[w]; i != nil {
		h.remove(i)
		i.c <- struct{}{}
	}
}

func (h *hub) remove(i *Idle) {
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
