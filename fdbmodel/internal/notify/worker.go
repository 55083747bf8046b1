package notify

import (
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Worker is one worker of this process as the notifier knows it. Its methods belong to one
// goroutine at a time.
type Worker struct {
	notifier *Notifier
	id       layout.WorkerID
	queues   []string // all of them, also those that are paused
	cancels  <-chan layout.ID

	heard   uint64               // hints that the last claim heeds
	woken   atomic.Pointer[hint] // what it is woken for
	far     bool                 // a hint of another process led to the claim
	pace    Pace                 // of such hints
	wokenAt kv.Stamp             // of the last wake through the store
	inRing  bool                 // it was written into the idle ring, and nothing removed it
}

// hint is what a worker was woken for.
type hint struct {
	shard int    // of the futures
	count uint64 // of the notifier's hints, with this one
	far   bool   // it came from another process
}

// maxCancelHints is the maximum number of hints that a worker has not received
// yet.
const maxCancelHints = 64

// Open adds a worker.
func (n *Notifier) Open(id layout.WorkerID, queues []string) *Worker {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := make(chan layout.ID, maxCancelHints)
	n.cancels[id] = c
	return &Worker{notifier: n, id: id, queues: queues, cancels: c}
}

// Close removes the worker.
func (w *Worker) Close() {
	w.notifier.mu.Lock()
	defer w.notifier.mu.Unlock()
	delete(w.notifier.cancels, w.id)
}

// Cancels receives futures of the worker that were cancelled within the process.
func (w *Worker) Cancels() <-chan layout.ID { return w.cancels }

// Claims says that a claim begins.
func (w *Worker) Claims() {
	w.notifier.mu.Lock()
	defer w.notifier.mu.Unlock()
	w.heard, w.far = w.notifier.hints, false
}

// Claimed says that the claim has ended, and whether it found something. It reports whether a
// hint of another process had led to it.
func (w *Worker) Claimed(found bool) (far bool) {
	if w.far {
		w.pace.Looked(w.notifier.now(), found, 0)
	}
	return w.far
}

// Want is what an idle worker can run.
type Want struct {
	Queues    []string
	Free      layout.Resources
	Labels    layout.LabelSet
	Runs      func(function string) bool
	NoObjects bool // it has no room for objects
	Name      string
	Last      bool // it is woken after the others
	// Defers reports whether it leaves what others have rejected to better ones. Nil is no.
	Defers func(function string) bool
}

func (w *Want) fits(d Demand) bool {
	return !d.refusedBy(w.Name) && !w.defers(d) && w.Free.Fit(d.requirements()) && !(d.Object && w.NoObjects) &&
		w.Labels.Have(d.Labels) && w.Runs(d.Function)
}

func (w *Want) defers(d Demand) bool {
	return d.Refused != "" && w.Defers != nil && w.Defers(d.Function)
}

// Request is a worker's request to be woken within its process.
type Request struct {
	worker *Worker
	want   Want
	missed bool
	paced  time.Time // before it the worker heeds no hints of other processes
	c      chan struct{}
}

// Request registers the worker, which has nothing to do. If the request Missed a hint, the
// worker must look for work once more before it waits.
func (w *Worker) Request(want Want) *Request {
	n := w.notifier
	r := &Request{worker: w, want: want, paced: w.pace.Next(), c: make(chan struct{}, 1)}
	n.mu.Lock()
	defer n.mu.Unlock()
	r.missed = n.hints != w.heard
	for _, q := range want.Queues {
		n.idle[q] = append(n.idle[q], r)
	}
	n.workers[w.id] = r
	return r
}

// Missed reports whether this process had work for some worker between the
// beginning of the worker's last Claim, or the hint that the Claim followed, and
// its call of RequestHint.
func (r *Request) Missed() bool { return r.missed }

// C receives one value when there may be work.
func (r *Request) C() <-chan struct{} { return r.c }

// Cancel withdraws the request. It may be called more than once.
func (r *Request) Cancel() {
	n := r.worker.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	n.remove(r)
}
