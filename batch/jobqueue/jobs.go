package jobqueue

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/joblog"
)

// Conditions of consumers and stages.
var (
	// ErrNoJob is returned by Jobs for an index that has no job yet.
	ErrNoJob = errors.New("no job at this index yet")
	// ErrRemoved is returned by a Log for a job that was removed, because all
	// consumers had done it. It ends a consumer.
	ErrRemoved = joblog.ErrRemoved
	// ErrLeaseLost ends what a process was doing as a stage when another process
	// took over.
	ErrLeaseLost = joblog.ErrLeaseLost
	// ErrJobFailed ends a consumer whose policy is Stop, with the job and its error.
	ErrJobFailed = errors.New("a job failed for good")
	// ErrBadOptions is returned for options outside of their limits.
	ErrBadOptions = errors.New("bad options")
	// ErrStarted is returned by a second Start.
	ErrStarted = errors.New("already started")
)

// Jobs finds jobs by their index. Its methods are called from one goroutine at a
// time. Errors other than ErrNoJob and ErrRemoved are retried with backoff, and are
// seen in Status.
type Jobs[J any] interface {
	// AtIndex returns the job at an index, or ErrNoJob. The job at an index is
	// always the same.
	AtIndex(ctx context.Context, index uint64) (J, error)
	// Head returns the index of the last job that there is, 0 for none. All jobs up
	// to it can be found, or were done by every consumer.
	Head(ctx context.Context) (uint64, error)
}

// JobRange is implemented by Jobs that find many jobs at once faster than one by
// one.
type JobRange[J any] interface {
	// Range returns jobs from an index on, at least one and at most limit. It
	// returns none, or ErrNoJob, if there is no job at that index yet.
	Range(ctx context.Context, from uint64, limit int) ([]J, error)
}

// ConsumerProgress stores how far a consumer has come. Its methods are called from
// one goroutine at a time.
type ConsumerProgress interface {
	// ProcessedIndex returns the stored index. If there is none, it stores initial
	// and returns that.
	ProcessedIndex(ctx context.Context, initial uint64) (uint64, error)
	// SetProcessedIndex stores an index durably: all jobs up to it are done. An error
	// is retried with backoff.
	SetProcessedIndex(ctx context.Context, index uint64) error
}

// Parker is implemented by a ConsumerProgress that can keep a list of parked jobs.
type Parker interface {
	// Park stores a job durably as one that was put aside. It is called before the
	// progress passes the job, and again for the same index after a crash.
	Park(ctx context.Context, p Parked) error
}

// Parked is a job that was put aside, because it failed for good.
type Parked struct {
	Index    uint64
	Attempts int
	Err      error
	// Value is the job as bytes, if it is one of a Log.
	Value []byte
}

// Job is a job with its index.
type Job[J any] struct {
	Index uint64
	Value J
	// Attempt counts the attempts since the consumer was started, from 1.
	Attempt int
}

// Worker processes jobs. Its method is called from many goroutines, one for each
// attempt.
type Worker[J any] interface {
	// Run processes a job, or passes it on to whoever does. The job is done once
	// NotifyJobIsDone of the consumer is called with its index, before or after Run
	// returns. An error, or a panic, is a failed attempt of a job that is not done.
	// The same job may be run more than once.
	Run(ctx context.Context, c *Consumer[J], job Job[J]) error
}

// WorkerFunc is a Worker whose jobs are done when it returns nil.
type WorkerFunc[J any] func(ctx context.Context, job Job[J]) error

// Run implements Worker.
func (f WorkerFunc[J]) Run(ctx context.Context, c *Consumer[J], job Job[J]) error {
	err := f(ctx, job)
	if err == nil {
		c.NotifyJobIsDone(job.Index)
	}
	return err
}

// permanent is an error of which another attempt would not get rid.
type permanent struct{ error }

// Unwrap returns the error.
func (p permanent) Unwrap() error { return p.error }

// Permanent marks an error that another attempt would meet again: the job is parked,
// or the consumer stopped, at once. With the policy Block it is an error like any
// other.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

// callWork turns a panic of fn into an error.
func callWork(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return fn()
}
