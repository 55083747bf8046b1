package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/workers"
)

// Point is a point of a curve.
type Point struct {
	// At is where it was measured: futures that arrive in a second, workers, or pending futures.
	At               float64 `json:"at"`
	FuturesPerSecond float64 `json:"futures_per_second"`
	P50              float64 `json:"p50_ms,omitempty"`
	P99              float64 `json:"p99_ms,omitempty"`
}

// point adds a point to the curve of the report.
func (r *run) point(p Point) { r.report.Points = append(r.report.Points, p) }

// period is how long a point is measured.
func (r *run) period() time.Duration {
	if r.options.Period > 0 {
		return r.options.Period
	}
	return 3 * time.Second
}

// load finds the rate at which clients that each have one future under way can submit and await,
// and then has futures arrive at parts of it, whether or not earlier ones have ended.
func load(ctx context.Context, r *run) error {
	const clients = 64
	n, w := r.futures(20_000), r.workers(2)
	return r.working(ctx, w, func() error {
		r.begin("peak", n)
		before, start := r.mark(), time.Now()
		errs := make([]error, clients)
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				for i := c; i < n && errs[c] == nil; i += clients {
					errs[c] = r.roundTrip(ctx, i)
				}
			})
		}
		wg.Wait()
		if err := firstError(errs); err != nil {
			return err
		}
		peak := perSecond(n, time.Since(start))
		r.spent(before, n)
		r.report.FuturesPerSecond = peak
		for _, part := range []float64{0.1, 0.25, 0.5, 0.75, 0.9} {
			r.begin(fmt.Sprintf("%.0f %% of the peak", 100*part), 0)
			p, err := r.arrivals(ctx, part*peak)
			if err != nil {
				return err
			}
			r.point(p)
		}
		return nil
	})
}

// roundTrip submits a future and awaits it.
func (r *run) roundTrip(ctx context.Context, i int) error {
	f, err := r.client.Submit(ctx, task(i))
	if err == nil {
		_, err = f.Await(ctx)
	}
	return err
}

// arrivals has futures arrive at random times. The first tenth of the period does not count.
func (r *run) arrivals(ctx context.Context, rate float64) (Point, error) {
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	var wg sync.WaitGroup
	var times []time.Duration
	var errs []error
	period, start, n := r.period(), time.Now(), 0
	for at := time.Duration(0); at < period; n++ {
		if err := clock.Sleep(ctx, clock.Real{}, at-time.Since(start)); err != nil {
			errs = append(errs, err)
			break
		}
		counts, i, begun := at > period/10, n, time.Now()
		wg.Go(func() {
			err := r.roundTrip(ctx, i)
			took := time.Since(begun)
			mu.Lock()
			defer mu.Unlock()
			if errs = append(errs, err); counts {
				times = append(times, took)
			}
		})
		at += time.Duration(random.ExpFloat64() / rate * float64(time.Second))
	}
	wg.Wait()
	p := Point{At: round(rate, 1), FuturesPerSecond: perSecond(n, time.Since(start))}
	if len(times) > 0 {
		p.P50, p.P99 = quantiles(times)
	}
	return p, firstError(errs)
}

// waitingTime is how long the function of scenario workers waits, as for another service.
const waitingTime = 2 * time.Millisecond

// moreWorkers takes the rate of futures that wait, with more and more workers of one slot.
func moreWorkers(ctx context.Context, r *run) error {
	const most = 16
	n := r.futures(10_000)
	r.workers(most)
	waiting := func(ctx context.Context, _ []byte) ([]byte, error) {
		defer r.step(1)
		return nil, clock.Sleep(ctx, clock.Real{}, waitingTime)
	}
	for w := 1; w <= most; w *= 2 {
		some := max(n*w/most, 1)
		err := r.within(ctx, func() error {
			all, err := r.submitAll(ctx, some)
			if err != nil {
				return err
			}
			r.begin(fmt.Sprintf("run by %d", w), some)
			before, start := r.mark(), time.Now()
			one := workers.Options{Slots: 1}
			return working(ctx, r.client.Cluster(), w, one, waiting, func() error {
				_, err := r.client.AwaitAll(ctx, all)
				r.report.FuturesPerSecond = perSecond(some, time.Since(start))
				r.point(Point{At: float64(w), FuturesPerSecond: r.report.FuturesPerSecond})
				r.spent(before, some)
				return err
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// morePending takes the rate with more and more futures pending, which feeders keep up.
func morePending(ctx context.Context, r *run) error {
	const few, times = 1000, 10
	most, w := r.futures(1_000_000), r.workers(2)
	for pending := min(few, most); pending <= most; pending *= times {
		h, err := r.heldBacklog(ctx, pending, w, r.period())
		if err != nil {
			return err
		}
		r.report.FuturesPerSecond = h.rate()
		r.point(Point{At: float64(pending), FuturesPerSecond: h.rate()})
	}
	return nil
}
