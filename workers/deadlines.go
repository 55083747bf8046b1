package workers

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/futura-run/futura/internal/clock"
)

// deadlines ends running jobs whose timeout has passed, whether or not their
// functions heed it.
type deadlines struct {
	clock  clock.Clock
	mu     sync.Mutex
	heap   deadlineHeap
	sooner chan struct{} // the first deadline changed
}

func newDeadlines(clk clock.Clock) *deadlines {
	return &deadlines{clock: clk, sooner: make(chan struct{}, 1)}
}

func (d *deadlines) add(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	heap.Push(&d.heap, j)
	if j.at == 0 {
		signal(d.sooner)
	}
}

func (d *deadlines) remove(j *job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if j.at >= 0 {
		heap.Remove(&d.heap, j.at)
	}
}

// due takes out the jobs that are over, and returns when the next will be, zero
// for none.
func (d *deadlines) due(now time.Time) (over []*job, next time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.heap) > 0 {
		if j := d.heap[0]; j.limit().After(now) {
			return over, j.limit()
		}
		over = append(over, heap.Pop(&d.heap).(*job))
	}
	return over, time.Time{}
}

// loop runs until ctx ends.
func (d *deadlines) loop(ctx context.Context) {
	for {
		over, next := d.due(d.clock.Now())
		for _, j := range over {
			// Settled first: what the function returns for its context counts no more.
			j.settle(j.overdue())
			j.cancel(ErrTimeout)
		}
		var timer clock.Timer
		var fires <-chan time.Time
		if !next.IsZero() {
			timer = d.clock.At(next)
			fires = timer.C()
		}
		select {
		case <-fires:
		case <-d.sooner:
		case <-ctx.Done():
		}
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// moduleGrace is how much longer than its timeout the call of a module may take:
// the runner keeps the timeout itself, not counting the time to load the code.
const moduleGrace = time.Minute

// limit is when the worker itself ends the job.
func (j *job) limit() time.Time {
	if isModule(j.future.Spec.Function) {
		return j.deadline.Add(moduleGrace)
	}
	return j.deadline
}

// deadlineHeap implements heap.Interface.
type deadlineHeap []*job

func (h deadlineHeap) Len() int           { return len(h) }
func (h deadlineHeap) Less(i, j int) bool { return h[i].limit().Before(h[j].limit()) }
func (h deadlineHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *deadlineHeap) Push(x any) {
	j := x.(*job)
	j.at = len(*h)
	*h = append(*h, j)
}

// Pop implements heap.Interface.
func (h *deadlineHeap) Pop() any {
	last := len(*h) - 1
	j := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	j.at = -1
	return j
}
