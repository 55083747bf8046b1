package jobqueue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/quota"
)

// Output is what a job does to the store of its cluster. It happens once, in the
// transaction that advances the progress over the job, or not at all. It is for one
// goroutine at a time, until the handler returns.
type Output struct {
	cluster *fdbmodel.Cluster
	index   uint64
	emits   []joblog.Emit
	count   int // of emitted jobs
	size    int // of emitted jobs, in bytes
	apply   []func(context.Context, kv.Tx) error
}

// applyError is an error of a function given to Apply.
type applyError struct {
	error
	index uint64
}

// Unwrap returns the error.
func (a *applyError) Unwrap() error { return a.error }

// Apply has fn called in the transaction that advances the progress over the job, to
// write the program's own keys into the same store or to submit futures, with
// Client.SubmitTx. It may be called more than once, so it must reset its results in
// each run; only the last run counts. It must be quick: a transaction with up to 100
// such calls has 5 s in all. An error that is not one of the store is a failed
// attempt of the job, which is then run again; while a limit of the cluster leaves no
// room for the futures, the commit waits, and the job stays done. fn must not commit or cancel the
// transaction, or write the cluster's own keys.
func (o *Output) Apply(fn func(ctx context.Context, tx kv.Tx) error) {
	o.apply = append(o.apply, func(ctx context.Context, tx kv.Tx) error {
		err := callWork(func() error { return fn(ctx, tx) })
		if err == nil || ctx.Err() != nil || isOfStore(err) || noRoom(err) > 0 {
			return err
		}
		return &applyError{err, o.index}
	})
}

// noRoom returns when there may be room in the cluster for what a job submits, 0 if that
// is not what failed or there never is.
func noRoom(err error) time.Duration {
	var limit *quota.LimitError
	if errors.As(err, &limit) {
		return limit.RetryAfter
	}
	return 0
}

// isOfStore reports whether an error is the store's: the transaction, and not the
// job, has failed.
func isOfStore(err error) bool {
	return kv.Retryable(err) || errors.Is(err, kv.ErrClosed) || errors.Is(err, kv.ErrStoreFailed) ||
		errors.Is(err, kv.ErrReadOnly)
}

// emit appends encoded jobs to a log.
func (o *Output) emit(cluster *fdbmodel.Cluster, queue string, jobs [][]byte) error {
	if o.cluster != cluster {
		return fmt.Errorf("%w: log %s is in another cluster than the stage, whose transactions can't write it", ErrBadOptions,
			queue)
	}
	size := 0
	for _, job := range jobs {
		size += len(job)
	}
	if o.count+len(jobs) > joblog.MaxAppend || o.size+size > joblog.MaxAppendBytes {
		return Permanent(fmt.Errorf("%w: one job emits %d jobs of %d bytes, at most %d of %d", fdbmodel.ErrTooLarge,
			o.count+len(jobs), o.size+size, joblog.MaxAppend, joblog.MaxAppendBytes))
	}
	o.count, o.size = o.count+len(jobs), o.size+size
	o.emits = append(o.emits, joblog.Emit{Queue: queue, Jobs: jobs})
	return nil
}

func (o *Output) empty() bool { return o == nil || len(o.emits) == 0 && len(o.apply) == 0 }

func (o *Output) jobs() int {
	if o == nil {
		return 0
	}
	return o.count
}

func (o *Output) funcs() int {
	if o == nil {
		return 0
	}
	return len(o.apply)
}

// effects are those of several outputs, in their order. Jobs for one log are appended
// together.
func effects(outputs []*Output) (all joblog.Effects) {
	logs := map[string]int{}
	for _, o := range outputs {
		for _, e := range o.emits {
			i, found := logs[e.Queue]
			if !found {
				i = len(all.Emits)
				logs[e.Queue] = i
				all.Emits = append(all.Emits, joblog.Emit{Queue: e.Queue})
			}
			all.Emits[i].Jobs = append(all.Emits[i].Jobs, e.Jobs...)
		}
		all.Apply = append(all.Apply, o.apply...)
	}
	return all
}
