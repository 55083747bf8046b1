package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/tuple"
	"github.com/futura-run/futura/futures"
)

// burndown submits first and starts the workers then; a future counts once the
// client has its result.
func burndown(ctx context.Context, r *run) error {
	n, w := r.futures(200_000), r.workers(2)
	if err := r.begin(ctx, "burndown"); err != nil {
		return err
	}
	empty, before := resident(), r.db.Usage()
	start := time.Now()
	all, err := r.submitAll(ctx, n)
	if err != nil {
		return err
	}
	r.report.SubmitPerSecond = perSecond(n, time.Since(start))
	r.report.ResidentBytes = resident()
	r.report.ResidentBytesPerFuture = round(float64(r.report.ResidentBytes-empty)/float64(n), 0)

	start = time.Now()
	stop, err := r.start(ctx, w)
	if err != nil {
		return err
	}
	if _, err := r.client.AwaitAll(ctx, all); err != nil {
		return err
	}
	r.report.FuturesPerSecond = perSecond(n, time.Since(start))
	r.usage(before, n)
	if err := stop(); err != nil {
		return err
	}
	return r.end(ctx)
}

// stream has 16 producers that submit one by one, and await, while workers run.
func stream(ctx context.Context, r *run) error {
	const producers = 16
	n, w := r.futures(100_000), r.workers(2)
	if err := r.begin(ctx, "stream"); err != nil {
		return err
	}
	stop, err := r.start(ctx, w)
	if err != nil {
		return err
	}
	before, start := r.db.Usage(), time.Now()
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
	r.report.SubmitPerSecond = perSecond(n, time.Since(start))
	if err := firstError(errs); err != nil {
		return err
	}
	for _, fs := range each {
		if _, err := r.client.AwaitAll(ctx, fs); err != nil {
			return err
		}
	}
	r.report.FuturesPerSecond = perSecond(n, time.Since(start))
	r.usage(before, n)
	if err := stop(); err != nil {
		return err
	}
	return r.end(ctx)
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

// latency submits one future at a time on an idle cluster, and times commits of
// one key beside.
func latency(ctx context.Context, r *run) error {
	const warm = 50
	n, w := r.futures(3000), r.workers(1)
	if err := r.begin(ctx, "latency"); err != nil {
		return err
	}
	stop, err := r.start(ctx, w)
	if err != nil {
		return err
	}
	var before Usage
	times, commits := make([]time.Duration, 0, n), make([]time.Duration, 0, n/commitEvery+1)
	for i := range n + warm {
		if i == warm {
			before = r.db.Usage()
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
		if err != nil {
			return err
		}
		if _, err := f.Await(ctx); err != nil {
			return err
		}
		if i >= warm {
			times = append(times, time.Since(start))
		}
	}
	r.usage(before, n)
	r.report.P50, r.report.P99 = quantiles(times)
	r.report.CommitP50, _ = quantiles(commits)
	r.report.LatencyInCommits = round(r.report.P50/r.report.CommitP50, 2)
	if err := stop(); err != nil {
		return err
	}
	return r.end(ctx)
}

// contention compares 64 workers with one, each with claim transactions of its
// own and nothing else to do.
func contention(ctx context.Context, r *run) error {
	n, w := r.futures(60_000), r.workers(64)
	one, err := r.claimers(ctx, n, 1)
	if err != nil {
		return err
	}
	before := r.db.Usage()
	many, err := r.claimers(ctx, n, w)
	if err != nil {
		return err
	}
	r.usage(before, n)
	r.report.FuturesPerSecond, r.report.Ratio = many, round(many/one, 3)
	return nil
}

// claimers burns down n futures by w bare registrations.
func (r *run) claimers(ctx context.Context, n, w int) (float64, error) {
	if err := r.begin(ctx, "contention"); err != nil {
		return 0, err
	}
	if err := r.feed(ctx, n); err != nil {
		return 0, err
	}
	var left atomic.Int64
	left.Store(int64(n))
	errs := make([]error, w)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range w {
		wg.Go(func() { errs[i] = r.claimer(ctx, &left) })
	}
	wg.Wait()
	rate := perSecond(n, time.Since(start))
	if err := firstError(errs); err != nil {
		return 0, err
	}
	return rate, r.end(ctx)
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
	}
	return reg.Leave(ctx)
}
