package jobqueue

import (
	"context"
	"errors"
	"time"
)

// Bounds of how many jobs are read at once.
const (
	readMin = 16
	readMax = 1000
)

// scanLoop looks for jobs whenever there may be new ones or room for them. It is the
// only one that does: calls of Check that come meanwhile cause one more look.
func (e *engine[J]) scanLoop() {
	defer e.loops.Done()
	for failures := 0; ; {
		err := e.look()
		switch {
		case e.scans.Err() != nil:
			return
		case errors.Is(err, ErrRemoved):
			e.abort(err)
			return
		case err != nil:
			failures++
			e.report("jobs could not be read", err)
			e.pause(e.scans, failures, e.checked)
			continue
		case failures > 0:
			failures = 0
			e.report("", nil)
		}
		e.await()
	}
}

// await waits until jobs are to be looked for.
func (e *engine[J]) await() {
	var due <-chan time.Time
	if e.options.Look > 0 {
		timer := e.options.Clock.At(e.options.Clock.Now().Add(e.options.Look))
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-e.checked:
	case <-due:
		e.mu.Lock()
		e.stale = true
		e.mu.Unlock()
	case <-e.stopped:
	}
}

// pause waits after the n-th failure in a row, until ctx ends, or something wakes it.
func (e *engine[J]) pause(ctx context.Context, n int, wake <-chan struct{}) {
	e.pauseFor(ctx, e.options.Backoff.Wait(n, 0.5), wake)
}

func (e *engine[J]) pauseFor(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := e.options.Clock.At(e.options.Clock.Now().Add(d))
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-wake:
	case <-ctx.Done():
	}
}

// look starts all jobs that there are and that there is room for.
func (e *engine[J]) look() error {
	for {
		from, n := e.room()
		if n == 0 {
			return nil
		}
		if len(e.ahead) == 0 {
			if err := e.read(from); err != nil || len(e.ahead) == 0 {
				return err
			}
		}
		n = min(n, len(e.ahead))
		e.start(e.ahead[:n])
		clear(e.ahead[:n])
		e.ahead = e.ahead[n:]
	}
}

// room returns the next job, and how many may be started from there.
func (e *engine[J]) room() (from uint64, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping {
		return 0, 0
	}
	n = max(0, e.options.MaxProcessing-e.busy)
	if bound := e.options.MaxSearchAhead; bound > 0 {
		n = int(min(uint64(n), bound-min(bound, uint64(len(e.window.states)))))
	}
	return e.window.next(), n
}

// read reads jobs from an index on, none if there is none yet.
func (e *engine[J]) read(from uint64) error {
	head, err := e.findHead(from)
	if err != nil || head < from {
		return err
	}
	if many, ok := e.source.(JobRange[J]); ok {
		limit := min(max(readMin, 2*e.options.MaxProcessing), readMax)
		e.ahead, err = many.Range(e.scans, from, int(min(uint64(limit), head-from+1)))
	} else {
		var job J
		if job, err = e.source.AtIndex(e.scans, from); err == nil {
			e.ahead = append(e.ahead[:0:0], job)
		}
	}
	if errors.Is(err, ErrNoJob) {
		e.ahead, err = nil, nil
	}
	return err
}

// findHead returns the index of the last job, as last read if from is not beyond it.
func (e *engine[J]) findHead(from uint64) (uint64, error) {
	e.mu.Lock()
	head, stale := e.head, e.stale || !e.watched
	if from > head && stale {
		e.stale = false
	}
	e.mu.Unlock()
	if from <= head || !stale {
		return head, nil
	}
	head, err := e.source.Head(e.scans)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.stale = true
		return 0, err
	}
	e.head = head
	return head, nil
}

// start starts the next jobs.
func (e *engine[J]) start(jobs []J) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping {
		return
	}
	for i := range jobs {
		job := Job[J]{Index: e.window.next(), Value: jobs[i], Attempt: 1}
		e.window.start()
		e.busy++
		e.live++
		e.attempts.Add(1)
		go e.attempt(job)
	}
}
