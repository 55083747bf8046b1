package bench

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel"
)

// await has one client await very many futures, which workers with a store and
// a cluster of their own run. It reports how long after the end of the last run
// the client had the last result, and how many watches it had open at a time.
func await(ctx context.Context, r *run) error {
	n, w := r.futures(100_000), r.workers(2)
	if err := r.begin(ctx, "await"); err != nil {
		return err
	}
	before := r.db.Usage()
	all, err := r.submitAll(ctx, n)
	if err != nil {
		return err
	}
	apart, err := fdbmodel.Open(ctx, r.db.Database, r.name, fdbmodel.Options{})
	if err != nil {
		return err
	}
	var ran, last atomic.Int64
	stop, err := startOn(ctx, apart, w, func(context.Context, []byte) ([]byte, error) {
		if ran.Add(1) == int64(n) {
			last.Store(time.Now().UnixNano())
		}
		return nil, nil
	})
	if err != nil {
		return err
	}
	start := time.Now()
	if _, err := r.client.AwaitAll(ctx, all); err != nil {
		return err
	}
	r.report.FuturesPerSecond = perSecond(n, time.Since(start))
	r.report.AfterLast = round(float64(time.Now().UnixNano()-last.Load())/float64(time.Millisecond), 4)
	r.report.Watches = r.db.MostWatches()
	r.usage(before, n)
	if err := stop(); err != nil {
		return err
	}
	return r.end(ctx)
}

// idle has many workers that find nothing to do, with their heartbeats and
// janitors, and reports what they ask of the store.
func idle(ctx context.Context, r *run) error {
	n, period := r.workers(1000), r.options.Period
	if period == 0 {
		period = 20 * time.Second
	}
	if err := r.begin(ctx, "idle"); err != nil {
		return err
	}
	stop, err := r.start(ctx, n)
	if err != nil {
		return err
	}
	// By the second period each has looked around and is in the ring.
	for range 2 {
		before, start := r.db.Usage(), time.Now()
		timer := time.NewTimer(period)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		u, took := r.db.Usage().minus(before), time.Since(start)
		r.report.ReadsPerSecond, r.report.KeysReadPerSecond = perSecond(int(u.Reads), took), perSecond(int(u.Keys), took)
		r.report.CommitsPerSecond = perSecond(int(u.Commits), took)
	}
	r.report.Watches = r.db.MostWatches()
	if err := stop(); err != nil {
		return err
	}
	return r.end(ctx)
}
