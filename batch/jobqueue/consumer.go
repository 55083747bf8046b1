package jobqueue

import (
	"context"
	"fmt"
	"sync"
)

// Consumer processes jobs by a worker, and stores how far it has come. Its methods
// may be called from many goroutines. One consumer at a time may use a
// ConsumerProgress: over many processes, use a Stage.
type Consumer[J any] struct {
	jobs     Jobs[J]
	progress ConsumerProgress
	worker   Worker[J]
	options  Options
	ready    chan struct{}
	done     chan struct{}

	mu      sync.Mutex
	started bool
	stopped bool
	engine  *engine[J] // once ready
}

// New returns a consumer, which does nothing before Start. It returns ErrBadOptions,
// also for the policy Park with a progress that is not a Parker.
func New[J any](jobs Jobs[J], progress ConsumerProgress, worker Worker[J], o Options) (*Consumer[J], error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	if _, parks := progress.(Parker); o.OnFailure == Park && !parks {
		return nil, fmt.Errorf("%w: to park jobs, the progress must have a method Park that stores them", ErrBadOptions)
	}
	return &Consumer[J]{jobs: jobs, progress: progress, worker: worker, options: o, ready: make(chan struct{}),
		done: make(chan struct{})}, nil
}

// Start reads the progress and begins to process the jobs after it, until Stop. It
// returns the error of the progress, after which it may be called again, and
// ErrStarted, also after Stop. ctx bounds the read alone.
func (c *Consumer[J]) Start(ctx context.Context) error {
	c.mu.Lock()
	if c.started || c.stopped {
		c.mu.Unlock()
		return ErrStarted
	}
	c.started = true
	c.mu.Unlock()
	processed, err := c.progress.ProcessedIndex(ctx, c.options.Initial) // others need not wait for it
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.started = false
		return fmt.Errorf("read the progress: %w", err)
	case c.stopped:
		return ErrStarted
	}
	e := newEngine(c.options, c.jobs, processed)
	e.work = func(ctx context.Context, job Job[J]) error { return c.worker.Run(ctx, c, job) }
	e.commit = c.store
	c.engine = e
	e.begin()
	close(c.ready)
	go func() {
		<-e.done
		close(c.done)
	}()
	return nil
}

// store parks jobs and stores the progress over them.
func (c *Consumer[J]) store(ctx context.Context, _, to uint64, results []result[J]) error {
	for i := range results {
		if err := c.progress.(Parker).Park(ctx, *results[i].parked); err != nil {
			return fmt.Errorf("park job %d: %w", results[i].parked.Index, err)
		}
	}
	return c.progress.SetProcessedIndex(ctx, to)
}

// Stop starts no more jobs, waits until those that are being processed are done or
// have failed, and stores the progress. When ctx ends first, it ends the contexts of
// the workers, waits for their Run to return, and returns ctx's error; jobs that were
// passed on are waited for no more. What is not stored by then is processed again after
// the next start. It returns the error that ended the consumer before, if there was
// one.
func (c *Consumer[J]) Stop(ctx context.Context) error {
	c.mu.Lock()
	e := c.engine
	if e == nil && !c.stopped {
		close(c.done)
	}
	c.stopped = true
	c.mu.Unlock()
	if e == nil {
		return nil
	}
	return e.stop(ctx)
}

// Ready is closed once Start has read the progress.
func (c *Consumer[J]) Ready() <-chan struct{} { return c.ready }

// Done is closed once the consumer has stopped, for Stop or for an error.
func (c *Consumer[J]) Done() <-chan struct{} { return c.done }

// Err returns the error that ended the consumer: ErrJobFailed, ErrRemoved, or one of
// a store that has failed for good. It is nil before that, and after Stop.
func (c *Consumer[J]) Err() error {
	if e := c.running(); e != nil {
		return e.failed()
	}
	return nil
}

func (c *Consumer[J]) running() *engine[J] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.engine
}

// Check says that there may be new jobs. It returns at once. However many calls there
// are, at most one look is under way; those that come meanwhile cause one more. It
// does nothing before Start.
func (c *Consumer[J]) Check() {
	if e := c.running(); e != nil {
		e.check()
	}
}

// NotifyJobIsDone says that a job is done. It does nothing for a job that was not
// started, or that has ended. The progress is stored soon after; see OnAdvance.
func (c *Consumer[J]) NotifyJobIsDone(index uint64) {
	if e := c.running(); e != nil {
		e.finish(Job[J]{Index: index}, nil)
	}
}

// NotifyJobFailed says that an attempt of a job failed that its worker had passed on,
// with Run returning nil. The job is then tried again, parked, or the consumer
// stopped, as the options say. It does nothing for a job that is not being processed, or
// of which a later attempt is.
func (c *Consumer[J]) NotifyJobFailed(job Job[J], err error) {
	if e := c.running(); e != nil && err != nil {
		e.fail(job, err)
	}
}

// LastProcessedIndex returns the index up to which all jobs are done or parked, as
// stored. It is 0 before Start.
func (c *Consumer[J]) LastProcessedIndex() uint64 {
	if e := c.running(); e != nil {
		return e.processed()
	}
	return 0
}

// Size returns how many jobs are in memory: those that were started and that the
// processed index has not passed.
func (c *Consumer[J]) Size() int {
	s := c.Status()
	return s.Processing + s.Waiting + s.Ended
}

// Status returns what the consumer is doing.
func (c *Consumer[J]) Status() Status {
	if e := c.running(); e != nil {
		return e.status()
	}
	return Status{}
}
