package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/batch/head"
)

// batches compares the items of one batch with as many plain futures: both from
// the submit to the last end, with workers that are running already.
func batches(ctx context.Context, r *run) error {
	n, w := r.futures(10_000), r.workers(2)
	return r.working(ctx, w, func() error {
		plain, err := r.plainFutures(ctx, n)
		if err != nil {
			return err
		}
		before := r.mark()
		took, err := r.oneBatch(ctx, n, unlimited)
		if err != nil {
			return err
		}
		r.spent(before, n)
		r.report.FuturesPerSecond = perSecond(n, took)
		r.report.Ratio = round(plain.Seconds()/took.Seconds(), 2)
		r.report.ResidentBytes = r.resident()
		return nil
	})
}

func (r *run) plainFutures(ctx context.Context, n int) (time.Duration, error) {
	start := time.Now()
	all, err := r.submitAll(ctx, n)
	if err == nil {
		_, err = r.client.AwaitAll(ctx, all)
	}
	return time.Since(start), err
}

// unlimited is how many items each worker runs at a time that is to run as many as it can.
const unlimited = 1 << 16

// oneBatch runs a batch of n no-ops, of which each worker runs so many at a time, and times it
// until it is done.
func (r *run) oneBatch(ctx context.Context, n, concurrency int) (time.Duration, error) {
	cluster := r.client.Cluster()
	h := head.New(head.Options{
		Store: futurestore.New(cluster, futurestore.Options{}), Dispatcher: head.NewCluster(cluster),
		Logger: r.options.Log,
	})
	heading, cancel := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- h.Run(heading) }()
	took, err := r.awaitBatch(ctx, h, n, concurrency)
	cancel()
	return took, errors.Join(err, <-ran)
}

// itemArgument is the only argument of an item.
func itemArgument(i int) string { return fmt.Sprintf("https://example.com/%080d", i) }

func (r *run) awaitBatch(ctx context.Context, h *head.Head, n, concurrency int) (time.Duration, error) {
	arguments := make([][]string, n)
	for i := range arguments {
		arguments[i] = []string{itemArgument(i)}
	}
	r.begin("a batch", n)
	start := time.Now()
	b, _, err := h.Submit(ctx, batch.Request{Arguments: arguments, Template: batch.Template{
		FunctionID: "go:" + noop, Config: batch.Config{Nodes: -1, Concurrency: concurrency},
	}})
	if err != nil {
		return 0, err
	}
	r.report.SubmitPerSecond = perSecond(n, time.Since(start))
	changed, stop, _, err := h.Store().Watch(ctx, b.ID)
	if err != nil {
		return 0, err
	}
	defer stop()
	for !b.Status.Over() {
		select {
		case <-changed:
		case <-time.After(10 * time.Millisecond): // the last change may be the batch's own
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		if b, err = h.Store().Get(ctx, b.ID); err != nil {
			return 0, err
		}
	}
	took := time.Since(start)
	progress, err := h.Store().Progress(ctx, b.ID)
	if err == nil && progress[batch.Done] != n {
		err = fmt.Errorf("%d of %d items are done", progress[batch.Done], n)
	}
	return took, err
}
