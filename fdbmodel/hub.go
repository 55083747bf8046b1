package fdbmodel

import "sync"

// hub wakes idle workers of this process without the store. It is a hint: a
// worker that misses it finds the work by its next look.
type hub struct {
	mu      sync.Mutex
	idle    map[string][]*Idle
	workers map[WorkerID]*Idle
	cancels map[WorkerID]chan ID
}

func newHub() *hub {
	return &hub{idle: map[string][]*Idle{}, workers: map[WorkerID]*Idle{}, cancels: map[WorkerID]chan ID{}}
}

// maxCancelHints bounds the hints that a worker has not taken yet.
const maxCancelHints = 64

// join makes room for a worker's hints; leave takes it away.
func (h *hub) join(w WorkerID) <-chan ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := make(chan ID, maxCancelHints)
	h.cancels[w] = c
	return c
}

func (h *hub) leave(w WorkerID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.cancels, w)
}

// cancel hints to a worker that somebody wants a future no more.
func (h *hub) cancel(w WorkerID, id ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case h.cancels[w] <- id:
	default:
	}
}

// Idle is a worker's wish to be woken within its process.
type Idle struct {
	hub    *hub
	worker WorkerID
	queues []string
	c      chan struct{}
}

// Idle registers a worker that has nothing to do. It must look for work once
// more after this and before it waits, so that no submit falls in between.
func (c *Cluster) Idle(worker WorkerID, queues []string) *Idle {
	i := &Idle{hub: c.hub, worker: worker, queues: queues, c: make(chan struct{}, 1)}
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	for _, q := range queues {
		c.hub.idle[q] = append(c.hub.idle[q], i)
	}
	c.hub.workers[worker] = i
	return i
}

// C is sent one value when there may be work.
func (i *Idle) C() <-chan struct{} { return i.c }

// Cancel withdraws the wish. It may be called more than once.
func (i *Idle) Cancel() {
	i.hub.mu.Lock()
	defer i.hub.mu.Unlock()
	i.hub.remove(i)
}

// wake wakes up to n workers that serve queue, the last to come first, and
// returns how many.
func (h *hub) wake(queue string, n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	woken := 0
	for woken < n && len(h.idle[queue]) > 0 {
		i := h.idle[queue][len(h.idle[queue])-1]
		h.remove(i)
		i.c <- struct{}{}
		woken++
	}
	return woken
}

// wakeWorker wakes one worker, if it is idle.
func (h *hub) wakeWorker(w WorkerID) {
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
