package jobqueue

import (
	"errors"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/signal"
)

// Bounds of what is committed at a time.
const (
	commitJobs  = 10_000 // that leave nothing but their progress
	commitFuncs = 100
)

// commitLoop stores the progress whenever jobs have ended without a gap. What ends
// during one commit is in the next.
func (e *engine[J]) commitLoop() {
	defer e.loops.Done()
	for last := false; !last; {
		select {
		case <-e.settled:
		case <-e.drained:
			last = true
		}
		if !e.commitAll() {
			return
		}
	}
}

// commitAll commits all that can be. It reports whether the engine goes on.
func (e *engine[J]) commitAll() bool {
	limit := commitJobs
	for failures := 0; ; {
		from, results, n := e.ready(limit)
		if n == 0 || e.commits.Err() != nil {
			return e.commits.Err() == nil
		}
		err := e.commit(e.commits, from, from+uint64(n), results)
		var refused *applyError
		large := errors.As(err, new(*tooLargeError))
		switch {
		case err == nil:
			if failures > 0 {
				e.report("", nil)
			}
			failures, limit = 0, min(2*limit, commitJobs)
			e.advance(n)
		case e.commits.Err() != nil:
			return false
		case errors.As(err, &refused):
			e.reopen(refused.index, refused.error)
		case large && n > 1:
			limit = max(1, n/2)
		case large:
			e.reopen(from+1, err)
		case noRoom(err) > 0:
			// Fewer at a time find room where many never do.
			limit = max(1, n/2)
			failures++
			e.report("the cluster has no room for what jobs submit", err)
			e.pauseFor(e.commits, noRoom(err), nil)
		case isFatal(err):
			e.abort(err)
			return false
		default:
			failures++
			e.report("progress could not be stored", err)
			e.pause(e.commits, failures, nil)
		}
	}
}

// tooLargeError is the error of a transaction with what jobs leave, which fewer may not exceed. That of a
// program's own store, which the progress alone exceeds, is retried like any other.
type tooLargeError struct{ error }

// Unwrap returns the error.
func (t *tooLargeError) Unwrap() error { return t.error }

func isTooLarge(err error) bool {
	return errors.Is(err, kv.ErrTxTooLarge) || errors.Is(err, kv.ErrValueTooLarge) || errors.Is(err, kv.ErrKeyTooLarge) ||
		errors.Is(err, fdbmodel.ErrTooLarge)
}

func isFatal(err error) bool {
	return errors.Is(err, ErrLeaseLost) || errors.Is(err, kv.ErrClosed) || errors.Is(err, kv.ErrStoreFailed)
}

// ready returns how many jobs after the processed index can be committed together,
// up to limit, and what they leave.
func (e *engine[J]) ready(limit int) (from uint64, results []result[J], n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	from = e.window.processed
	all := e.window.consecutive(limit)
	jobs, size, funcs := 0, 0, 0
	for n < all {
		r, found := e.results[from+uint64(n)+1]
		if found {
			jobs, size, funcs = jobs+r.output.jobs(), size+r.size(), funcs+r.output.funcs()
			if n > 0 && (jobs > joblog.MaxAppend || size > joblog.MaxAppendBytes || funcs > commitFuncs) {
				break
			}
			results = append(results, r)
		}
		n++
	}
	return from, results, n
}

func (r *result[J]) size() int {
	if r.parked != nil {
		const fixed = 1000 // an error, and a key
		return fixed + len(r.parked.Value)
	}
	return r.output.size
}

// advance passes n jobs that were committed.
func (e *engine[J]) advance(n int) {
	e.mu.Lock()
	if len(e.results) > 0 {
		for i := range n {
			delete(e.results, e.window.processed+uint64(i)+1)
		}
	}
	e.window.advance(n)
	processed := e.window.processed
	e.mu.Unlock()
	if e.options.OnAdvance != nil {
		e.options.OnAdvance(processed)
	}
	signal.Send(e.checked)
}

// reopen has a job fail after it has ended, because what it leaves can't be
// committed.
func (e *engine[J]) reopen(index uint64, err error) {
	e.mu.Lock()
	job := e.results[index].job
	delete(e.results, index)
	e.window.set(index, running)
	e.busy++
	e.live++
	if e.stopping {
		e.window.set(index, waiting)
		e.live--
		e.mu.Unlock()
		return
	}
	e.mu.Unlock()
	e.fail(job, err)
}
