// Package bench measures a whole cluster: client, model, store and workers in
// one process. Every commit is synced, and results are kept.
package bench

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// Report is the result of a scenario. Fields that do not apply to it are
// omitted.
type Report struct {
	Scenario               string   `json:"scenario"`
	Store                  string   `json:"store"`
	Futures                int      `json:"futures"`
	Workers                int      `json:"workers"`
	FuturesPerSecond       float64  `json:"futures_per_second,omitempty"`
	SubmitPerSecond        float64  `json:"submit_per_second,omitempty"`
	P50                    float64  `json:"p50_ms,omitempty"`
	P99                    float64  `json:"p99_ms,omitempty"`
	CommitP50              float64  `json:"commit_p50_ms,omitempty"`
	LatencyInCommits       float64  `json:"latency_in_commits,omitempty"`
	AfterLast              float64  `json:"after_last_ms,omitempty"`
	Watches                int      `json:"watches,omitempty"`
	ReadsPerSecond         float64  `json:"reads_per_second,omitempty"`
	KeysReadPerSecond      float64  `json:"keys_read_per_second,omitempty"`
	CommitsPerSecond       float64  `json:"commits_per_second,omitempty"`
	TransactionsPerFuture  float64  `json:"transactions_per_future,omitempty"`
	MutationsPerFuture     float64  `json:"mutations_per_future,omitempty"`
	ReadsPerFuture         float64  `json:"reads_per_future,omitempty"`
	ConflictsPerCommit     *float64 `json:"conflicts_per_transaction,omitempty"`
	SmallPerSecond         float64  `json:"small_futures_per_second,omitempty"`
	Ratio                  float64  `json:"ratio,omitempty"`
	OneByOneRatio          float64  `json:"one_by_one_ratio,omitempty"`
	RatioToUnstoppable     float64  `json:"ratio_to_unstoppable,omitempty"`
	FsyncP50               float64  `json:"fsync_p50_ms,omitempty"`
	StoreSyncP50           float64  `json:"store_sync_p50_ms,omitempty"`
	ResidentBytesPerFuture float64  `json:"resident_bytes_per_future,omitempty"`
	ResidentBytes          int64    `json:"resident_bytes,omitempty"`
	// PerFuture is the cost of a future, PerSecond that of a second in which there
	// are none.
	PerFuture *Cost `json:"per_future,omitempty"`
	PerSecond *Cost `json:"per_second,omitempty"`
	// Objects is what the scenario of that name measures.
	Objects *Objects `json:"objects,omitempty"`
	// Hints is what the scenario of that name measures.
	Hints *Hints `json:"hints,omitempty"`
	// B7S compares with a head of b7s; B7SSkipped says why it does not.
	B7S        *B7S   `json:"b7s,omitempty"`
	B7SSkipped string `json:"b7s_skipped,omitempty"`
	// Shapes are graphs of futures that use each other.
	Shapes []Shape `json:"shapes,omitempty"`
	// Lanes is what members of lanes cost.
	Lanes []LaneCost `json:"lanes,omitempty"`
	// Pressures are the rates beside something else.
	Pressures []Pressure `json:"pressures,omitempty"`
	// Points are the curve of the scenarios load, workers, pending and history.
	Points []Point `json:"points,omitempty"`
	Cores  int     `json:"cores"`
}

// Options of Run.
type Options struct {
	// Store is the store's name, for the report.
	Store string
	// Dir is the directory whose disk an fsync is timed on. Defaults to none.
	Dir string
	// Futures overrides a scenario's number of futures. Defaults to its own.
	Futures int
	// Workers overrides a scenario's number of workers. Defaults to its own.
	Workers int
	// Period overrides how long a backlog is held, 10 s, how long idle workers
	// are observed, 20 s, and how long a point of a curve takes, 3 s. Defaults to these.
	Period time.Duration
	// B7S is the program of b7s's node that the scenario peers is compared with, and
	// B7SStore the URI of a MongoDB, for nodes that keep their batches there. Default to none.
	B7S, B7SStore string
	// Progress is told how far the run is. Defaults to none.
	Progress *Progress
	// Log is told what is in progress. Defaults to none.
	Log *slog.Logger
}

// Scenarios are the names that Run knows.
func Scenarios() []string {
	return []string{"burndown", "stream", "latency", "backlog", "contention", "await", "idle", "batch", "graph", "lanes",
		"processes", "steps", "actors", "wasm", "objects", "hints", "peers", "load", "workers", "pending", "history",
		"pressure"}
}

// Run measures one scenario on a store, in a cluster of its own, whose keys it
// removes at the end.
func Run(ctx context.Context, db kv.Database, scenario string, o Options) (Report, error) {
	scenarios := map[string]func(context.Context, *run) error{
		"burndown": inCluster(burndown), "stream": inCluster(stream), "latency": inCluster(latency), "backlog": backlog,
		"contention": contention, "await": inCluster(await), "idle": inCluster(idle), "batch": inCluster(batches),
		"graph": graphs, "lanes": lanes, "processes": processes,
		"steps": inSteps, "actors": onActors, "wasm": functions, "objects": storeObjects,
		"hints": inCluster(hints), "peers": inCluster(peers), "load": inCluster(load), "workers": moreWorkers,
		"pending": morePending, "history": inCluster(history), "pressure": pressure,
	}
	fn, ok := scenarios[scenario]
	if !ok {
		return Report{}, fmt.Errorf("no scenario %q: use one of %v", scenario, Scenarios())
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = new(Progress)
	}
	r := &run{options: o, progress: o.Progress, db: NewMeter(db)}
	r.report = Report{Scenario: scenario, Store: o.Store, Cores: runtime.GOMAXPROCS(0)}
	r.begin("prepare", 0)
	if o.Dir != "" {
		p50, err := fsyncP50(o.Dir)
		if err != nil {
			return Report{}, err
		}
		r.report.FsyncP50 = p50
	}
	err := fn(ctx, r)
	if s, ok := db.(*embedded.Store); ok {
		r.report.StoreSyncP50 = round(s.Stats().SyncMedian.Seconds()*1000, 4)
	}
	return r.report, err
}

// run is one measurement under way.
type run struct {
	options  Options
	progress *Progress
	db       *Meter
	report   Report
	client   *futures.Client
	name     string
	config   layout.Config
	aside    cost // of measuring
}

// inCluster is a scenario that needs one fresh cluster.
func inCluster(fn func(context.Context, *run) error) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		return r.within(ctx, func() error { return fn(ctx, r) })
	}
}

// within calls fn with a client of a fresh cluster, whose keys it removes.
func (r *run) within(ctx context.Context, fn func() error) (err error) {
	r.name = "bench-" + r.report.Scenario
	if err := fdbmodel.Wipe(ctx, r.db, r.name); err != nil {
		return err
	}
	if r.client, err = futures.New(ctx, r.db, futures.Options{Cluster: r.name, Config: r.config}); err != nil {
		return err
	}
	return firstError([]error{fn(), r.client.Close(ctx), fdbmodel.Wipe(ctx, r.db, r.name)})
}

func (r *run) futures(own int) int {
	if r.options.Futures > 0 {
		own = r.options.Futures
	}
	r.report.Futures = own
	return own
}

func (r *run) workers(own int) int {
	if r.options.Workers > 0 {
		own = r.options.Workers
	}
	r.report.Workers = own
	return own
}

const noop = "noop"

// working calls fn while n workers run no-ops.
func (r *run) working(ctx context.Context, n int, fn func() error) error {
	count := func(context.Context, []byte) ([]byte, error) { r.step(1); return nil, nil }
	return working(ctx, r.client.Cluster(), n, workers.Options{}, count, fn)
}

// working calls fn while n workers of a cluster, with options but for the name, run no-ops by function.
func working(ctx context.Context, c *fdbmodel.Cluster, n int, o workers.Options, function workers.Function,
	fn func() error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		o.Name = fmt.Sprintf("bench-%d", i)
		w, err := workers.FromCluster(c, o)
		if err == nil {
			err = w.Register(noop, function)
		}
		if err != nil {
			cancel()
			wg.Wait()
			return err
		}
		wg.Go(func() { errs[i] = w.Run(ctx) })
	}
	err := fn()
	cancel()
	wg.Wait()
	return firstError(append([]error{err}, errs...))
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

const argsSize = 100

// task is a no-op with arguments that don't compress.
func task(i int) futures.Task {
	args := make([]byte, argsSize)
	x := uint64(i)*0x9e3779b97f4a7c15 + 1
	for at := range args {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		args[at] = byte(x)
	}
	return futures.Task{Function: "go:" + noop, Args: args}
}

// submitAll submits n no-ops.
func (r *run) submitAll(ctx context.Context, n int) ([]*futures.Future, error) {
	r.begin("submit", n)
	return r.submitTasks(ctx, n, task)
}

// submitTasks submits n futures by a few goroutines at once.
func (r *run) submitTasks(ctx context.Context, n int, task func(int) futures.Task) ([]*futures.Future, error) {
	const producers, one, most = 8, 100, 1000 // one transaction has one hundred
	batch := min(max(n/producers/one, 1)*one, most)
	all := make([]*futures.Future, n)
	errs := make([]error, producers)
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for first := p * batch; first < n; first += producers * batch {
				tasks := make([]futures.Task, min(batch, n-first))
				for i := range tasks {
					tasks[i] = task(first + i)
				}
				submitted, err := r.client.SubmitMany(ctx, tasks)
				if err != nil {
					errs[p] = err
					return
				}
				copy(all[first:], submitted)
				r.step(len(submitted))
			}
		})
	}
	wg.Wait()
	return all, firstError(errs)
}

func round(v float64, digits int) float64 {
	scale := 1.0
	for range digits {
		scale *= 10
	}
	return float64(int64(v*scale+0.5)) / scale
}

func perSecond(n int, d time.Duration) float64 { return round(float64(n)/d.Seconds(), 1) }

// quantiles returns the median and the 99th percentile in milliseconds.
func quantiles(times []time.Duration) (p50, p99 float64) {
	slices.Sort(times)
	ms := func(q float64) float64 {
		return round(float64(times[int(q*float64(len(times)-1))])/float64(time.Millisecond), 4)
	}
	return ms(0.5), ms(0.99)
}

// fsyncP50 times an append of 4 KiB with its fsync.
func fsyncP50(dir string) (float64, error) {
	f, err := os.CreateTemp(dir, "fsync-*")
	if err != nil {
		return 0, err
	}
	defer func() {
		f.Close()
		os.Remove(filepath.Clean(f.Name()))
	}()
	times := make([]time.Duration, 200)
	page := make([]byte, 4096)
	for i := range times {
		start := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		times[i] = time.Since(start)
	}
	p50, _ := quantiles(times)
	return p50, nil
}

// resident is the memory of this process, in bytes, after garbage was returned.
func resident() int64 {
	runtime.GC()
	debug.FreeOSMemory()
	return residentNow()
}

// residentNow is the memory of this process, in bytes.
func residentNow() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse + m.StackInuse)
	}
	var total, pages int64
	if _, err := fmt.Sscan(string(b), &total, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
