package jobqueue

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/internal/clock"
)

// run has the stage work whenever it holds its lease.
func (s *Stage[J]) run() {
	defer close(s.done)
	defer s.giveUp()
	for {
		lease, err := s.take(s.standby)
		if err != nil {
			if s.standby.Err() == nil {
				s.fail(err)
			}
			return
		}
		err = s.lead(lease)
		switch {
		case errors.Is(err, ErrLeaseLost):
			s.options.Logger.Warn("another process took over", "error", err)
		case err != nil:
			s.fail(err)
			return
		}
		select {
		case <-s.stopping:
			return
		default:
		}
	}
}

func (s *Stage[J]) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// take waits until the lease is this process's. Another one that holds it is taken for
// dead once its record did not change for the dead-after time, by this process's own
// clock.
func (s *Stage[J]) take(ctx context.Context) (*joblog.Lease, error) {
	config := s.cluster.Config()
	var seen []byte
	var since time.Time
	for failures := 0; ; {
		ask := joblog.Take{About: s.options.About, Initial: int64(min(s.options.Initial, 1<<62)),
			Foreign: s.log == nil}
		now := s.options.Clock.Now()
		if seen != nil && now.Sub(since) >= config.DeadAfter {
			ask.Observed = seen
		}
		lease, present, err := joblog.Of(s.cluster).Take(ctx, s.consumer, ask)
		switch {
		case lease != nil:
			return lease, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case isFatal(err):
			return nil, err
		case err != nil:
			failures++
			s.options.Logger.Warn("the lease could not be read; retrying", "error", err)
			if err := clock.Wait(ctx, s.options.Clock, now.Add(s.options.Backoff.Wait(failures, 0.5))); err != nil {
				return nil, err
			}
			continue
		}
		failures = 0
		if !bytes.Equal(present, seen) {
			seen, since = present, now
		}
		if err := s.awaitLease(ctx, since.Add(config.DeadAfter)); err != nil {
			return nil, err
		}
	}
}

// awaitLease waits until the lease changes, or until a time: for a heartbeat at most if the watch has failed, within
// which it would have fired.
func (s *Stage[J]) awaitLease(ctx context.Context, until time.Time) error {
	watch, err := joblog.Of(s.cluster).WatchLease(ctx, s.consumer)
	if err != nil {
		return clock.Wait(ctx, s.options.Clock, until)
	}
	defer watch.Cancel()
	timer := s.options.Clock.At(until)
	defer timer.Stop()
	select {
	case <-watch.Done():
		if watch.Err() != nil {
			beat := s.options.Clock.Now().Add(s.cluster.Config().Heartbeat)
			return clock.Wait(ctx, s.options.Clock, clock.Earlier(until, beat))
		}
	case <-timer.C():
	case <-ctx.Done():
	}
	return ctx.Err()
}

// lead works until the stage stops or loses its lease.
func (s *Stage[J]) lead(lease *joblog.Lease) error {
	e := newEngine(s.options.Options, s.items(), uint64(lease.Progress))
	e.watched = s.log != nil
	e.work = func(ctx context.Context, job Job[item[J]]) error {
		if job.Value.err != nil {
			return job.Value.err
		}
		out := &Output{cluster: s.cluster, index: job.Index}
		err := s.handle(ctx, Job[J]{Index: job.Index, Value: job.Value.value, Attempt: job.Attempt}, out)
		if err == nil {
			e.finish(job, out)
		}
		return err
	}
	e.commit = func(ctx context.Context, from, to uint64, results []result[item[J]]) error {
		err := commitStage(ctx, lease, from, to, results)
		if err == nil {
			s.count(int64(to-from), results)
		}
		return err
	}
	e.encode = func(job item[J]) []byte { return job.raw }
	e.failedOne = func() { s.tally.failed.Add(1) }
	s.mu.Lock()
	s.engine, s.last = e, uint64(lease.Progress)
	stopped := s.stopped
	s.mu.Unlock()
	if stopped {
		e.halt(nil) // Stop has not seen it, and could not end what it starts
	}
	e.begin()
	s.readyOnce.Do(func() { close(s.ready) })
	s.tend(lease, e)
	err := s.verdict(lease, e.failed())
	s.mu.Lock()
	s.engine, s.last = nil, e.processed()
	s.mu.Unlock()
	release, cancel := context.WithTimeout(context.Background(), s.cluster.Config().DeadAfter)
	defer cancel()
	if err := lease.Release(release); err != nil {
		s.options.Logger.Warn("the lease could not be released", "error", err)
	}
	return err
}

// verdict returns what an engine ended with, as ErrLeaseLost if the lease was lost before
// or can't be asked for. A process that was stopped for longer than the dead-after time
// may see that jobs were removed, or that one fails, before it hears of its loss.
func (s *Stage[J]) verdict(lease *joblog.Lease, err error) error {
	if err == nil || isFatal(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.cluster.Config().DeadAfter)
	defer cancel()
	_, lost := lease.Beat(ctx, joblog.Trouble{}, 1)
	switch {
	case errors.Is(lost, ErrLeaseLost):
		return errors.Join(lost, err)
	case lost != nil && !isFatal(lost):
		return errors.Join(ErrLeaseLost, lost, err)
	}
	return err
}

// count counts jobs that were committed.
func (s *Stage[J]) count(jobs int64, results []result[item[J]]) {
	parked := int64(0)
	for i := range results {
		if results[i].parked != nil {
			parked++
		}
	}
	s.tally.done.Add(jobs - parked)
	s.tally.parked.Add(parked)
}

// retries are parked jobs that are to be tried again. While some are under way the next are not read: their marks
// say so until they have ended.
type retries struct {
	jobs chan []joblog.ParkedJob
	busy atomic.Bool
}

// tend does what an engine needs besides, until it ends: signs of life, retries of
// parked jobs, the removal of jobs that all consumers have done, and, for a log, a
// watch for new ones.
func (s *Stage[J]) tend(lease *joblog.Lease, e *engine[item[J]]) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	again := &retries{jobs: make(chan []joblog.ParkedJob, 1)}
	var loops sync.WaitGroup
	defer loops.Wait()
	defer cancel()
	loops.Go(func() { s.beatLoop(ctx, lease, e, again) })
	loops.Go(func() { s.retryLoop(ctx, lease, e, again) })
	if s.log != nil {
		loops.Go(func() { _ = s.log.Watch(ctx, e.check) })
	}
	<-e.done
}

// commitStage commits what jobs leave with the progress over them.
func commitStage[J any](ctx context.Context, lease *joblog.Lease, from, to uint64, results []result[J]) error {
	var parked []joblog.ParkedJob
	var outputs []*Output
	for i := range results {
		if p := results[i].parked; p != nil {
			parked = append(parked, joblog.ParkedJob{Index: int64(p.Index), Attempts: int64(p.Attempts), Error: p.Err.Error(),
				Value: p.Value})
		} else {
			outputs = append(outputs, results[i].output)
		}
	}
	err := lease.Commit(ctx, int64(from), int64(to), parked, effects(outputs))
	if isTooLarge(err) {
		err = &tooLargeError{err}
	}
	return err
}

// beatLoop shows signs of life until ctx ends, and passes on parked jobs that are to
// be tried again. The loss of the lease ends the engine.
func (s *Stage[J]) beatLoop(ctx context.Context, lease *joblog.Lease, e *engine[item[J]], again *retries) {
	const retriesAtOnce = 100
	trimmed, warned := e.processed(), false
	for {
		most := retriesAtOnce
		if again.busy.Load() {
			most = 0
		}
		asked, err := lease.Beat(ctx, troubleOf(e.status()), most)
		switch {
		case ctx.Err() != nil:
			return
		case isFatal(err):
			e.abort(err)
			return
		case err != nil:
			s.options.Logger.Warn("a sign of life could not be written; retrying", "error", err)
		}
		if err == nil && len(asked) > 0 {
			again.busy.Store(true)
			again.jobs <- asked // there is room while none is under way
		}
		if processed := e.processed(); s.log != nil && processed > trimmed {
			err := s.log.Trim(ctx)
			if err == nil {
				trimmed = processed
			} else if ctx.Err() == nil && !warned {
				s.options.Logger.Warn("jobs that are done could not be removed from their log; retrying", "error", err)
			}
			warned = err != nil
		}
		next := s.options.Clock.Now().Add(s.cluster.Config().Heartbeat)
		if clock.Wait(ctx, s.options.Clock, next) != nil {
			return
		}
	}
}

// troubleOf returns what the lease says about a job that fails.
func troubleOf(status Status) joblog.Trouble {
	if len(status.Failing) > 0 {
		f := status.Failing[0]
		return joblog.Trouble{Index: int64(f.Index), Attempts: int64(f.Attempts), Error: f.Err.Error()}
	}
	if status.Trouble != nil {
		return joblog.Trouble{Index: int64(status.Processed) + 1, Error: status.Trouble.Error()}
	}
	return joblog.Trouble{}
}

// retryLoop tries parked jobs again, one at a time, out of the order, until ctx ends or the engine stops.
func (s *Stage[J]) retryLoop(ctx context.Context, lease *joblog.Lease, e *engine[item[J]], again *retries) {
	for {
		select {
		case all := <-again.jobs:
			for _, parked := range all {
				if !s.retry(lease, e, parked) {
					return
				}
			}
			again.busy.Store(false)
		case <-ctx.Done():
			return
		}
	}
}

// retry tries a parked job again, and reports whether others may follow.
func (s *Stage[J]) retry(lease *joblog.Lease, e *engine[item[J]], parked joblog.ParkedJob) bool {
	if !e.enter() {
		return false
	}
	defer e.attempts.Done()
	err := s.redo(e.commits, lease, e, parked)
	switch {
	case e.jobs.Err() != nil || e.commits.Err() != nil:
		return false
	case isFatal(err):
		e.abort(err)
		return false
	case err != nil:
		s.options.Logger.Warn("a parked job failed again", "index", parked.Index, "error", err)
	}
	return true
}

// redo makes one attempt of a parked job.
func (s *Stage[J]) redo(ctx context.Context, lease *joblog.Lease, e *engine[item[J]], parked joblog.ParkedJob,
) error {
	out := &Output{cluster: s.cluster, index: uint64(parked.Index)}
	err := callWork(func() error {
		job, err := s.parkedJob(e.jobs, parked)
		if err != nil {
			return err
		}
		return s.handle(e.jobs, job, out)
	})
	if e.jobs.Err() != nil {
		return err
	}
	if err == nil {
		err = lease.Redo(ctx, parked.Index, nil, effects([]*Output{out}))
		for ; noRoom(err) > 0 && ctx.Err() == nil; err = lease.Redo(ctx, parked.Index, nil, effects([]*Output{out})) {
			s.options.Logger.Warn("the cluster has no room for what a parked job submits; retrying", "index", parked.Index,
				"error", err)
			e.pauseFor(ctx, noRoom(err), nil)
		}
		dropped := errors.Is(err, fdbmodel.ErrNotFound) && !errors.As(err, new(*applyError))
		if err == nil || dropped || isFatal(err) || ctx.Err() != nil {
			return err
		}
	}
	failure := parked
	failure.Attempts++
	failure.Error = err.Error()
	return errors.Join(err, lease.Redo(ctx, parked.Index, &failure, joblog.Effects{}))
}

func (s *Stage[J]) parkedJob(ctx context.Context, parked joblog.ParkedJob) (job Job[J], err error) {
	job = Job[J]{Index: uint64(parked.Index), Attempt: int(parked.Attempts) + 1}
	if s.log != nil {
		job.Value, err = s.log.options.Codec.Decode(parked.Value)
	} else {
		var found item[J]
		found, err = itemsOf[J]{s.source, s.asked}.AtIndex(ctx, job.Index)
		job.Value = found.value
	}
	return job, err
}
