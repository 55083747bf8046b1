package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/futura-run/futura/futures"
)

// historyArgs is the size of the arguments of futures that have ended, in bytes.
const historyArgs = 500

// mostAwaited is how many futures of a history are pending and awaited at once, at most.
const mostAwaited = 200_000

// history fills the store with futures that have ended, in 20 parts or more, and then reads some of all parts,
// one after the other. The ratio is the mean rate of the second half to that of the first part.
func history(ctx context.Context, r *run) error {
	const parts, keptOfPart, reads = 20, 100, 500
	n, w := r.futures(1_000_000), r.workers(2)
	part := min(max(n/parts, 1), mostAwaited)
	var old []*futures.Future
	large := func(i int) futures.Task {
		t := task(i)
		for len(t.Args) < historyArgs {
			t.Args = append(t.Args, t.Args...)
		}
		t.Args = t.Args[:historyArgs]
		return t
	}
	before := r.mark()
	err := r.working(ctx, w, func() error {
		for ended := 0; ended < n; ended += part {
			some := min(part, n-ended)
			start := time.Now()
			all, err := r.submitTasks(ctx, some, large)
			if err != nil {
				return err
			}
			r.begin(fmt.Sprintf("run after %d", ended), 0)
			if _, err := r.client.AwaitAll(ctx, all); err != nil {
				return err
			}
			r.point(Point{At: float64(ended + some), FuturesPerSecond: perSecond(some, time.Since(start))})
			r.report.ResidentBytes = max(r.report.ResidentBytes, residentNow())
			for range keptOfPart {
				old = append(old, all[rand.IntN(len(all))])
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.spent(before, n)
	points := r.report.Points
	later := points[len(points)/2:]
	for _, p := range later {
		r.report.FuturesPerSecond += p.FuturesPerSecond / float64(len(later))
	}
	r.report.FuturesPerSecond = round(r.report.FuturesPerSecond, 1)
	r.report.SmallPerSecond = points[0].FuturesPerSecond
	r.report.Ratio = round(r.report.FuturesPerSecond/r.report.SmallPerSecond, 3)
	r.begin("read", reads)
	times := make([]time.Duration, 0, reads)
	for range reads {
		start := time.Now()
		if _, err := r.client.Get(ctx, old[rand.IntN(len(old))].ID()); err != nil {
			return err
		}
		times = append(times, time.Since(start))
		r.step(1)
	}
	r.report.P50, r.report.P99 = quantiles(times)
	return nil
}
