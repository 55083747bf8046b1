package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// backlog compares the rate with few and with very many futures pending, which
// feeders keep up while workers run.
func backlog(ctx context.Context, r *run) error {
	const few = 1000
	many, w := r.futures(1_000_000), r.workers(2)
	period := r.options.Period
	if period == 0 {
		period = 10 * time.Second
	}
	small, err := r.heldBacklog(ctx, few, w, period)
	if err != nil {
		return err
	}
	large, err := r.heldBacklog(ctx, many, w, period)
	if err != nil {
		return err
	}
	r.report.SmallPerSecond, r.report.FuturesPerSecond = small.rate(), large.rate()
	r.report.Ratio = round(large.rate()/small.rate(), 3)
	return nil
}

// held is how many futures ran in what time while a backlog was held.
type held struct {
	ended int
	took  time.Duration
}

func (h held) rate() float64 { return perSecond(h.ended, h.took) }

// heldBacklog fills a fresh cluster, lets workers run and keeps pending futures
// in it. The first fill does not count, nor in the cost of a future.
func (r *run) heldBacklog(ctx context.Context, pending, w int, period time.Duration) (h held, err error) {
	err = r.within(ctx, func() error {
		empty := r.resident()
		r.begin("fill", pending)
		if err := r.feed(ctx, pending); err != nil {
			return err
		}
		r.report.ResidentBytes = r.resident()
		r.report.ResidentBytesPerFuture = round(float64(r.report.ResidentBytes-empty)/float64(pending), 0)
		r.begin(fmt.Sprintf("run with %d pending", pending), 0)
		f := newFeeders(pending)
		return working(ctx, r.client.Cluster(), w, workers.Options{}, f.count, func() error {
			select {
			case <-f.began:
			case <-ctx.Done():
				return ctx.Err()
			}
			feeding, cancel := context.WithTimeout(ctx, period)
			defer cancel()
			before, start := r.mark(), time.Now()
			err := f.run(ctx, feeding, r)
			h = held{ended: int(f.ended.Load()), took: time.Since(start)}
			r.spent(before, h.ended)
			return err
		})
	})
	return h, err
}

// feeders submit as many futures as have run, in batches, a few at a time, so
// that feeding is not what is measured.
type feeders struct {
	batch      int64
	ended, fed atomic.Int64
	// began is closed when the first future runs.
	began chan struct{}
	// due has a value for each batch that has run.
	due chan struct{}
}

const feederCount = 8

func newFeeders(pending int) *feeders {
	// A batch for each feeder is at most a fifth of what is held.
	batch := min(max(pending/(5*feederCount), 1), 100)
	return &feeders{batch: int64(batch), began: make(chan struct{}), due: make(chan struct{}, pending/batch+1)}
}

// count is the function that the futures call.
func (f *feeders) count(context.Context, []byte) ([]byte, error) {
	ended := f.ended.Add(1)
	if ended == 1 {
		close(f.began)
	}
	if ended%f.batch == 0 {
		select {
		case f.due <- struct{}{}:
		default:
		}
	}
	return nil, nil
}

// run feeds until feeding ends, which is not an error.
func (f *feeders) run(ctx, feeding context.Context, r *run) error {
	errs := make([]error, feederCount)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for {
				select {
				case <-feeding.Done():
					errs[i] = ctx.Err()
					return
				case <-f.due:
				}
				if errs[i] = r.feed(ctx, int(f.batch)); errs[i] != nil {
					return
				}
				f.fed.Add(f.batch)
			}
		})
	}
	wg.Wait()
	return firstError(errs)
}

// feed submits futures without awaiting them.
func (r *run) feed(ctx context.Context, n int) error {
	const batch = 1000
	for first := 0; first < n; first += batch {
		tasks := make([]futures.Task, min(batch, n-first))
		for i := range tasks {
			tasks[i] = task(first + i)
			tasks[i].NoNotify = true
		}
		if _, err := r.client.SubmitMany(ctx, tasks); err != nil {
			return err
		}
		r.step(len(tasks))
	}
	return nil
}
