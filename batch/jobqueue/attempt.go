package jobqueue

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/futura-run/futura/internal/signal"
)

// failure is a job that failed and is to be tried again.
type failure struct {
	Failing
	stop func() // ends the wait; nil until the wait has begun
}

// Failing is a job that failed and is tried again.
type Failing struct {
	Index uint64
	// Attempts is how often it failed since the consumer was started.
	Attempts int
	Err      error
	// Next is when it is tried again, or was.
	Next time.Time
}

// attempt makes one attempt of a job that is running.
func (e *engine[J]) attempt(job Job[J]) {
	defer e.attempts.Done()
	if err := callWork(func() error { return e.work(e.jobs, job) }); err != nil {
		e.fail(job, err)
	}
}

// finish notes that a job is done. It does nothing for a job that has ended, or was
// never started.
func (e *engine[J]) finish(job Job[J], output *Output) {
	e.mu.Lock()
	state := e.window.at(job.Index)
	if state != running && state != waiting || e.err != nil {
		e.mu.Unlock()
		return
	}
	if state == running {
		e.leave()
	}
	if f := e.failing[job.Index]; f != nil && f.stop != nil {
		f.stop()
	}
	e.end(result[J]{job: job, output: output})
	e.mu.Unlock()
	signal.Send(e.settled)
	signal.Send(e.checked)
}

// end notes, under mu, that a job has ended, and keeps what it leaves.
func (e *engine[J]) end(r result[J]) {
	delete(e.failing, r.job.Index)
	e.window.set(r.job.Index, ended)
	e.busy--
	if r.parked != nil || !r.output.empty() {
		e.results[r.job.Index] = r
	}
}

// fail ends an attempt that failed, unless the job is done nevertheless, or a later attempt has begun.
func (e *engine[J]) fail(job Job[J], err error) {
	e.mu.Lock()
	before := e.failing[job.Index]
	if e.window.at(job.Index) != running || before != nil && job.Attempt <= before.Attempts {
		e.mu.Unlock()
		return
	}
	e.leave()
	if e.failedOne != nil {
		e.failedOne()
	}
	if e.stopping {
		e.window.set(job.Index, waiting) // it is tried again after the next start
		e.mu.Unlock()
		return
	}
	e.options.Logger.Warn("a job failed", "index", job.Index, "attempt", job.Attempt, "error", err)
	final := job.Attempt >= e.options.MaxAttempts || errors.As(err, new(permanent))
	switch {
	case final && e.options.OnFailure == Stop:
		e.window.set(job.Index, waiting)
		e.mu.Unlock()
		e.abortAfterCommits(fmt.Errorf("%w: job %d, after %d attempts: %w", ErrJobFailed, job.Index, job.Attempt, err))
	case final && e.options.OnFailure == Park:
		parked := &Parked{Index: job.Index, Attempts: job.Attempt, Err: err}
		if e.encode != nil {
			parked.Value = e.encode(job.Value)
		}
		e.end(result[J]{job: job, parked: parked})
		e.mu.Unlock()
		signal.Send(e.settled)
		signal.Send(e.checked)
	default:
		e.wait(job, err)
	}
}

// abortAfterCommits ends the engine for an error: no job is started any more, those
// that run are told to end, and what has ended is committed.
func (e *engine[J]) abortAfterCommits(err error) {
	e.halt(err)
	e.cancelJobs()
}

// wait has a job that failed tried again, after a wait. It is called under mu, which
// it releases.
func (e *engine[J]) wait(job Job[J], err error) {
	now := e.options.Clock.Now()
	f := &failure{Failing: Failing{Index: job.Index, Attempts: job.Attempt, Err: err,
		Next: now.Add(e.options.Backoff.Wait(job.Attempt, rand.Float64()))}}
	e.failing[job.Index] = f
	e.window.set(job.Index, waiting)
	due := f.Next
	e.mu.Unlock()
	// A clock may call at once, in this goroutine.
	stop := e.options.Clock.AfterFunc(due, func() { e.again(job) })
	e.mu.Lock()
	defer e.mu.Unlock()
	if f.stop = stop; e.stopping {
		stop()
	}
}

// again makes another attempt of a job that waits.
func (e *engine[J]) again(job Job[J]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping || e.window.at(job.Index) != waiting {
		return
	}
	job.Attempt++
	e.window.set(job.Index, running)
	e.live++
	e.attempts.Add(1)
	go e.attempt(job)
}

// Status is what a consumer is doing.
type Status struct {
	// Processed is the index up to which all jobs are done or parked, as stored, and
	// Head the last job that was seen.
	Processed, Head uint64
	// Processing and Waiting count jobs that run, and that wait for their next
	// attempt. Ended counts those that have ended beyond Processed.
	Processing, Waiting, Ended int
	// Failing are the jobs that failed and are tried again, lowest first, at most
	// 100.
	Failing []Failing
	// Trouble is the last error of the jobs' source, or of storing the progress, while
	// that is retried.
	Trouble error
}

const maxFailing = 100

func (e *engine[J]) status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Status{Processed: e.window.processed, Head: e.head, Processing: e.live, Waiting: e.busy - e.live,
		Ended: len(e.window.states) - e.busy, Trouble: e.trouble}
	for _, f := range e.failing {
		s.Failing = append(s.Failing, f.Failing)
	}
	slices.SortFunc(s.Failing, func(a, b Failing) int { return cmp.Compare(a.Index, b.Index) })
	s.Failing = s.Failing[:min(len(s.Failing), maxFailing)]
	return s
}
