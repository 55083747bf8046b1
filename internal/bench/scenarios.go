package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/futures"
)

// burndown submits first and then starts the workers; a future counts once the
// client has its result.
func burndown(ctx context.Context, r *run) error {
	n, w := r.futures(200_000), r.workers(2)
	empty, before := r.resident(), r.mark()
	start := time.Now()
	all, err := r.submitAll(ctx, n)
	if err != nil {
		return err
	}
	r.report.SubmitPerSecond = perSecond(n, time.Since(start))
	r.report.ResidentBytes = r.resident()
	r.report.ResidentBytesPerFuture = round(float64(r.report.ResidentBytes-empty)/float64(n), 0)

	r.begin("run", n)
	start = time.Now()
	return r.working(ctx, w, func() error {
		_, err := r.client.AwaitAll(ctx, all)
		r.report.FuturesPerSecond = perSecond(n, time.Since(start))
		r.spent(before, n)
		return err
	})
}

// stream runs 16 producers that submit one by one, and await, while workers run.
func stream(ctx context.Context, r *run) error {
	n, w := r.futures(100_000), r.workers(2)
	return r.working(ctx, w, func() error {
		r.begin("submit and run", n)
		before, start := r.mark(), time.Now()
		each, err := r.submitEach(ctx, n)
		r.report.SubmitPerSecond = perSecond(n, time.Since(start))
		if err != nil {
			return err
		}
		for _, fs := range each {
			if _, err := r.client.AwaitAll(ctx, fs); err != nil {
				return err
			}
		}
		r.report.FuturesPerSecond = perSecond(n, time.Since(start))
		r.spent(before, n)
		return nil
	})
}

// submitEach has producers submit n no-ops one by one, and returns those of each.
func (r *run) submitEach(ctx context.Context, n int) ([][]*futures.Future, error) {
	const producers = 16
	each := make([][]*futures.Future, producers)
	errs := make([]error, producers)
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := p; i < n; i += producers {
				f, err := r.client.Submit(ctx, task(i))
				if err != nil {
					errs[p] = err
					return
				}
				each[p] = append(each[p], f)
			}
		})
	}
	wg.Wait()
	return each, firstError(errs)
}

// commitEvery is after how many futures of latency a commit is timed.
const commitEvery = 10

// commit times a transaction that writes one key, past the meter. The key is
// cleared with the cluster.
func (r *run) commit(ctx context.Context) (time.Duration, error) {
	key, err := tuple.Pack("futura", r.name, "commit")
	if err != nil {
		return 0, err
	}
	tx := r.db.Database.Begin(kv.Options{})
	defer tx.Cancel()
	tx.Set(key, []byte("timed"))
	start := time.Now()
	_, err = tx.Commit(ctx)
	return time.Since(start), err
}

// latency submits one future at a time on an idle cluster, and also times commits
// of one key.
func latency(ctx context.Context, r *run) error {
	n, w := r.futures(3000), r.workers(1)
	return r.working(ctx, w, func() error { return r.oneAtATime(ctx, n) })
}

func (r *run) oneAtATime(ctx context.Context, n int) error {
	const warm = 50
	r.begin("one at a time", n+warm)
	var before mark
	times, commits := make([]time.Duration, 0, n), make([]time.Duration, 0, n/commitEvery+1)
	for i := range n + warm {
		if i == warm {
			before = r.mark()
		}
		if i%commitEvery == 0 {
			took, err := r.commit(ctx)
			if err != nil {
				return err
			}
			commits = append(commits, took)
		}
		start := time.Now()
		f, err := r.client.Submit(ctx, task(i))
		if err == nil {
			_, err = f.Await(ctx)
		}
		if err != nil {
			return err
		}
		if i >= warm {
			times = append(times, time.Since(start))
		}
	}
	r.spent(before, n)
	r.report.P50, r.report.P99 = quantiles(times)
	r.report.CommitP50, _ = quantiles(commits)
	r.report.LatencyInCommits = round(r.report.P50/r.report.CommitP50, 2)
	return nil
}

// contention compares 64 workers with one, each with claim transactions of its
// own and nothing else to do.
func contention(ctx context.Context, r *run) error {
	n, w := r.futures(60_000), r.workers(64)
	one, err := r.claimers(ctx, n, 1)
	if err != nil {
		return err
	}
	before := r.mark()
	many, err := r.claimers(ctx, n, w)
	if err != nil {
		return err
	}
	r.spent(before, n)
	r.report.FuturesPerSecond, r.report.Ratio = many, round(many/one, 3)
	return nil
}

// claimers burns down n futures by w bare registrations.
func (r *run) claimers(ctx context.Context, n, w int) (rate float64, err error) {
	err = r.within(ctx, func() error {
		r.begin("fill", n)
		if err := r.feed(ctx, n); err != nil {
			return err
		}
		r.begin(fmt.Sprintf("%d claiming", w), n)
		var left atomic.Int64
		left.Store(int64(n))
		errs := make([]error, w)
		var wg sync.WaitGroup
		start := time.Now()
		for i := range w {
			wg.Go(func() { errs[i] = r.claimer(ctx, &left) })
		}
		wg.Wait()
		rate = perSecond(n, time.Since(start))
		return firstError(errs)
	})
	return rate, err
}

func (r *run) claimer(ctx context.Context, left *atomic.Int64) error {
	const batch = 16
	free := layout.Resources{Slots: batch}
	reg, err := r.client.Cluster().Register(ctx, layout.WorkerInfo{Functions: []string{"go:" + noop}, Capacity: free})
	if err != nil {
		return err
	}
	for left.Load() > 0 {
		answer, err := reg.Claim(ctx, fdbmodel.ClaimRequest{Free: free, Max: batch})
		if err != nil {
			return err
		}
		if len(answer.Futures) == 0 {
			continue
		}
		completions := make([]fdbmodel.Completion, len(answer.Futures))
		for i := range answer.Futures {
			completions[i] = fdbmodel.Completion{Future: &answer.Futures[i], Result: &layout.Result{}}
		}
		if _, err := reg.Finish(ctx, completions); err != nil {
			return err
		}
		left.Add(-int64(len(completions)))
		r.step(len(completions))
	}
	return reg.Leave(ctx)
}
