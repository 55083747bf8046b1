package workers

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
)

// Causes that end a function's context.
var (
	// ErrCancelled is the cause when somebody wants the future no more.
	ErrCancelled = errors.New("workers: the future was cancelled")
	// ErrStopping is the cause when the worker stops before the function ended.
	ErrStopping = errors.New("workers: the worker stops")
	// ErrTimeout is the cause when the function ran longer than its timeout.
	ErrTimeout = errors.New("workers: the timeout has passed")
)

// life is one membership of a worker: until it leaves, is reaped, or vanishes.
type life struct {
	worker *Worker
	reg    *fdbmodel.Registration
	base   context.Context
	end    context.CancelCauseFunc

	mu      sync.Mutex
	wake    *sync.Cond // queue, free or closing changed
	queue   []*job     // claimed and not started
	running map[fdbmodel.ID]*job
	free    fdbmodel.Resources
	closing bool
	pace    time.Duration // moving average of a run

	endedMu sync.Mutex
	ended   []fdbmodel.Completion // not written to the store
	news    chan struct{}         // ended is not empty
	hungry  chan struct{}         // the queue runs low
}

// job is a claimed future on its way through the worker.
type job struct {
	future  fdbmodel.ClaimedFuture
	claimed time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
}

func (j *job) requirements() fdbmodel.Requirements {
	if j.future.Spec == nil {
		return fdbmodel.Requirements{}
	}
	return j.future.Spec.Requirements
}

func (w *Worker) newLife(ctx context.Context, reg *fdbmodel.Registration) *life {
	base, end := context.WithCancelCause(context.WithoutCancel(ctx))
	l := &life{
		worker: w, reg: reg, base: base, end: end, running: map[fdbmodel.ID]*job{}, free: reg.Info().Capacity,
		news: make(chan struct{}, 1), hungry: make(chan struct{}, 1),
	}
	l.wake = sync.NewCond(&l.mu)
	return l
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Bounds of what is claimed ahead of the slots.
const (
	aheadTime = 20 * time.Millisecond // as much work as that
	aheadMax  = 2 * fdbmodel.MaxClaim
)

// ahead is how many claimed futures may wait for a slot. Long functions have
// none waiting for them: others may be free to run those.
func (l *life) ahead() int {
	slots := l.worker.options.Slots
	if l.pace <= 0 {
		return 4 * slots
	}
	return min(int(aheadTime/l.pace)*slots, aheadMax)
}

// slot runs one job after the other.
func (l *life) slot() {
	for {
		j := l.take()
		if j == nil {
			return
		}
		start := l.worker.cluster.Now()
		c := l.execute(j)
		l.settle(j, c, l.worker.cluster.Now().Sub(start))
	}
}

// take returns the next job that fits into what is free, and nil when the life
// is closing.
func (l *life) take() *job {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closing {
		if j := l.pick(); j != nil {
			return j
		}
		signal(l.hungry)
		l.wake.Wait()
	}
	return nil
}

// pick is called under mu.
func (l *life) pick() *job {
	for i, j := range l.queue {
		q := j.requirements()
		if !l.free.Fit(q) {
			continue
		}
		if i == 0 {
			l.queue[0] = nil
			l.queue = l.queue[1:]
		} else {
			l.queue = append(l.queue[:i], l.queue[i+1:]...)
		}
		l.free = l.free.Take(q)
		j.ctx, j.cancel = context.WithCancelCause(l.base)
		l.running[j.future.ID] = j
		if j.future.Cancel != nil {
			j.cancel(ErrCancelled)
		}
		if len(l.queue) <= l.ahead()/2 {
			signal(l.hungry)
		}
		return j
	}
	return nil
}

// settle takes note of how a job ended and frees what it used.
func (l *life) settle(j *job, c fdbmodel.Completion, took time.Duration) {
	l.mu.Lock()
	delete(l.running, j.future.ID)
	l.free = l.free.Give(j.requirements())
	l.pace += (max(took, time.Microsecond) - l.pace) / 8
	waiting := len(l.queue) > 0
	l.mu.Unlock()
	j.cancel(nil)
	if waiting {
		l.wake.Signal()
	}
	l.put(c)
}

// put queues a completion for the store.
func (l *life) put(c fdbmodel.Completion) {
	l.endedMu.Lock()
	l.ended = append(l.ended, c)
	l.endedMu.Unlock()
	signal(l.news)
}

// close lets the slots end after what they run, and gives back what waits.
func (l *life) close() {
	l.mu.Lock()
	l.closing = true
	waiting := l.queue
	l.queue = nil
	l.mu.Unlock()
	l.wake.Broadcast()
	for _, j := range waiting {
		l.put(fdbmodel.Completion{Future: &j.future, Relinquish: true})
	}
}

// drain waits for what runs, and ends it after the drain timeout. A function
// that does not heed its context keeps Run from returning.
func (l *life) drain(slots *sync.WaitGroup, lost bool) {
	done := make(chan struct{})
	go func() {
		slots.Wait()
		close(done)
	}()
	timer := l.worker.cluster.Clock().At(l.worker.cluster.Now().Add(l.worker.options.DrainTimeout))
	defer timer.Stop()
	if !lost {
		select {
		case <-done:
		case <-timer.C():
		case <-l.worker.vanish.Done():
		}
	}
	l.end(ErrStopping)
	<-done
}

// finishers is how many transactions that end futures are under way at most.
const finishers = 2

// finishLoop writes completions as they come: one transaction takes all that
// have gathered while the one before was under way.
func (l *life) finishLoop(ctx context.Context) error {
	for {
		select {
		case <-l.news:
		case <-ctx.Done():
			return nil
		}
		if err := l.flushSome(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// flushSome writes up to one transaction's worth. What could not be written is
// kept.
func (l *life) flushSome(ctx context.Context) error {
	if l.worker.vanished() {
		return nil
	}
	l.endedMu.Lock()
	n := min(len(l.ended), fdbmodel.MaxFinish)
	batch := l.ended[:n:n]
	if l.ended = l.ended[n:]; len(l.ended) > 0 {
		signal(l.news)
	} else {
		l.ended = nil
	}
	l.endedMu.Unlock()
	if n == 0 {
		return nil
	}
	outcomes, err := l.reg.Finish(ctx, batch)
	l.tally(batch[:len(outcomes)], outcomes)
	if err != nil {
		l.endedMu.Lock()
		l.ended = append(batch[len(outcomes):], l.ended...)
		l.endedMu.Unlock()
	}
	return err
}

// flush writes everything.
func (l *life) flush(ctx context.Context) error {
	for {
		l.endedMu.Lock()
		n := len(l.ended)
		l.endedMu.Unlock()
		if n == 0 || l.worker.vanished() {
			return nil
		}
		if err := l.flushSome(ctx); err != nil {
			return err
		}
	}
}

func (l *life) tally(batch []fdbmodel.Completion, outcomes []fdbmodel.Outcome) {
	s := &l.worker.stats
	for i, o := range outcomes {
		switch c := &batch[i]; {
		case o == fdbmodel.Lost:
			s.lost.Add(1)
			l.worker.options.Logger.Warn("a future was no longer held when it ended", "future", c.Future.ID)
		case c.Result != nil:
			s.ran.Add(1)
		case c.Exception != nil:
			s.failed.Add(1)
		case c.PutBack:
			s.putBack.Add(1)
		default:
			s.relinquished.Add(1)
		}
	}
}
