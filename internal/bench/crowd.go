package bench

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/workers"
)

// await has one client await very many futures, which separate workers run. It
// reports how long after the end of the last run the client had the last result,
// and how many watches it had open at a time.
func await(ctx context.Context, r *run) error {
	n, w := r.futures(100_000), r.workers(2)
	before := r.mark()
	all, err := r.submitAll(ctx, n)
	if err != nil {
		return err
	}
	apart, err := fdbmodel.Open(ctx, r.db.Database, r.name, fdbmodel.Options{})
	if err != nil {
		return err
	}
	r.begin("run", n)
	var ran, last atomic.Int64
	count := func(context.Context, []byte) ([]byte, error) {
		r.step(1)
		if ran.Add(1) == int64(n) {
			last.Store(time.Now().UnixNano())
		}
		return nil, nil
	}
	return working(ctx, apart, w, workers.Options{}, count, func() error {
		start := time.Now()
		_, err := r.client.AwaitAll(ctx, all)
		r.report.FuturesPerSecond = perSecond(n, time.Since(start))
		r.report.AfterLast = round(float64(time.Now().UnixNano()-last.Load())/float64(time.Millisecond), 4)
		r.report.Watches = r.db.MostWatches()
		r.spent(before, n)
		return err
	})
}

// idle runs many workers that find nothing to do, with their heartbeats and
// janitors, and reports their requests to the store.
func idle(ctx context.Context, r *run) error {
	n, period := r.workers(1000), r.options.Period
	if period == 0 {
		period = 20 * time.Second
	}
	return r.working(ctx, n, func() error {
		r.begin("idle", 0)
		// By the second period each has looked around and is in the ring.
		for range 2 {
			before, start := r.mark(), time.Now()
			if err := clock.Wait(ctx, clock.Real{}, start.Add(period)); err != nil {
				return err
			}
			now, took := r.mark(), time.Since(start)
			u := now.usage.minus(before.usage)
			r.report.PerSecond = now.cost.minus(before.cost).per(took.Seconds())
			r.report.ReadsPerSecond, r.report.KeysReadPerSecond = perSecond(int(u.Reads), took), perSecond(int(u.Keys), took)
			r.report.CommitsPerSecond = perSecond(int(u.Commits), took)
		}
		r.report.Watches = r.db.MostWatches()
		return nil
	})
}
