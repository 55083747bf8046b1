package jobqueue

import (
	"context"
	"errors"
	"sync"

	"github.com/futura-run/futura/internal/signal"
)

// engine runs the jobs of one consumer, from one start to its end. One goroutine
// finds and starts jobs (scan.go), each attempt has its own (attempt.go), and one
// stores the progress (commit.go).
type engine[J any] struct {
	options Options
	source  Jobs[J]
	// watched says that Check is called whenever there are new jobs.
	watched bool
	// work makes one attempt. The job is done once done was called for it.
	work func(ctx context.Context, job Job[J]) error
	// commit advances the progress over jobs that have ended, with what they did.
	commit func(ctx context.Context, from, to uint64, results []result[J]) error
	// encode returns a job as bytes, for the list of parked ones. It may be nil.
	encode func(J) []byte
	// failedOne is called for each attempt that failed. It may be nil.
	failedOne func()

	checked chan struct{} // is sent a value when jobs are to be looked for
	settled chan struct{} // is sent a value when a job has ended

	jobs, commits, scans context.Context
	cancelJobs           context.CancelFunc
	cancelCommits        context.CancelFunc
	cancelScans          context.CancelFunc
	attempts, loops      sync.WaitGroup
	stopped              chan struct{} // closed when no more jobs are started
	quiet                chan struct{} // closed when besides that none is running
	drained              chan struct{} // closed when besides that no attempt will end any more
	done                 chan struct{} // closed at the end

	ahead []J // jobs that were read and not started, for the scan alone

	mu       sync.Mutex
	window   window
	head     uint64 // as last read
	stale    bool   // whether there may be jobs beyond head
	busy     int    // jobs that are running or waiting
	live     int    // jobs that are running
	results  map[uint64]result[J]
	failing  map[uint64]*failure
	trouble  error // of the source or of the progress, while it is retried
	stopping bool
	err      error
}

// result is what a job that has ended leaves to be committed.
type result[J any] struct {
	job    Job[J]
	output *Output
	parked *Parked
}

// newEngine returns an engine that goes on after a processed index. The caller sets
// what it works with, and calls begin.
func newEngine[J any](o Options, source Jobs[J], processed uint64) *engine[J] {
	e := &engine[J]{
		options: o, source: source, window: window{processed: processed}, stale: true,
		checked: make(chan struct{}, 1), settled: make(chan struct{}, 1), stopped: make(chan struct{}),
		quiet: make(chan struct{}), drained: make(chan struct{}), done: make(chan struct{}),
		results: map[uint64]result[J]{}, failing: map[uint64]*failure{},
	}
	e.jobs, e.cancelJobs = context.WithCancel(context.Background())
	e.commits, e.cancelCommits = context.WithCancel(context.Background())
	e.scans, e.cancelScans = context.WithCancel(context.Background())
	return e
}

// begin starts the engine's goroutines.
func (e *engine[J]) begin() {
	e.loops.Add(2)
	go e.scanLoop()
	go e.commitLoop()
	go e.supervise()
}

// supervise ends the engine in order, once it is to stop.
func (e *engine[J]) supervise() {
	<-e.stopped
	e.cancelScans()
	select {
	case <-e.quiet:
	case <-e.jobs.Done():
	}
	e.attempts.Wait()
	close(e.drained)
	e.loops.Wait()
	e.cancelJobs()
	e.cancelCommits()
	close(e.done)
}

// stop starts no more jobs and waits until those that run have ended, and the
// progress is stored. If ctx ends first, it ends their contexts and waits for the
// attempts to return; what is not stored by then is not stored.
func (e *engine[J]) stop(ctx context.Context) error {
	e.halt(nil)
	select {
	case <-e.done:
		return e.failed()
	case <-ctx.Done():
	}
	e.cancelJobs()
	e.cancelCommits()
	<-e.done
	return errors.Join(e.failed(), ctx.Err())
}

// abort ends the engine at once for an error.
func (e *engine[J]) abort(err error) {
	e.halt(err)
	e.cancelJobs()
	e.cancelCommits()
}

// halt makes the engine start no more jobs. The first error that is given is the
// one it ends with.
func (e *engine[J]) halt(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
	}
	if e.stopping {
		return
	}
	e.stopping = true
	for _, f := range e.failing {
		if f.stop != nil {
			f.stop()
		}
	}
	close(e.stopped)
	if e.live == 0 {
		close(e.quiet)
	}
}

// failed returns the error that the engine ended with.
func (e *engine[J]) failed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// enter counts an attempt of a job that was parked among those that a stop waits for. It reports whether one may begin.
func (e *engine[J]) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.stopping {
		e.attempts.Add(1)
	}
	return !e.stopping
}

// leave notes, under mu, that a running job runs no more.
func (e *engine[J]) leave() {
	e.live--
	if e.stopping && e.live == 0 {
		close(e.quiet)
	}
}

// check has the scan look for jobs once more.
func (e *engine[J]) check() {
	e.mu.Lock()
	e.stale = true
	e.mu.Unlock()
	signal.Send(e.checked)
}

// report keeps an error that is retried, or nil, for display.
func (e *engine[J]) report(what string, err error) {
	e.mu.Lock()
	e.trouble = err
	e.mu.Unlock()
	if err != nil {
		e.options.Logger.Warn(what+"; retrying", "error", err)
	}
}

func (e *engine[J]) processed() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.window.processed
}
