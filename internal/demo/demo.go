// Package demo is the main job on real input: a function over many source files,
// while one of the workers dies.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/futura-run/futura/examples/wasm/countlines/summary"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/workers"
	"github.com/futura-run/futura/workers/wasm"
)

// Options of Run.
type Options struct {
	// Dir is where the Go source files are. Required.
	Dir string
	// Files is the most files to take, 0 for all.
	Files int
	// Typed runs a typed Go function instead of a WASM module.
	Typed bool
	// Module is the WASM function, unless Typed.
	Module []byte
	// Workers is how many run, one of which vanishes. Defaults to 3.
	Workers int
	// Progress is told how many futures have ended. Defaults to none.
	Progress func(ended, all int)
	// Log is told what happens. Defaults to none.
	Log *slog.Logger
}

// Report is the result of a demo.
type Report struct {
	Function   string        `json:"function"`
	Files      int           `json:"files"`
	Total      Totals        `json:"total"`
	Largest    []File        `json:"largest"`
	Wrong      []string      `json:"wrong"` // files whose summary differs from a local computation
	Workers    int           `json:"workers"`
	Vanished   string        `json:"vanished_worker"`
	HeldByIt   int           `json:"held_by_vanished_worker"`
	Reaped     int64         `json:"reaped"`
	Took       time.Duration `json:"took_ns"`
	LocalTook  time.Duration `json:"local_took_ns"`
	PerSecond  float64       `json:"files_per_second"`
	Isolation  string        `json:"isolation,omitempty"`
	CheckClean bool          `json:"same_as_local"`
}

// Totals are sums over all files.
type Totals struct {
	Bytes     int64 `json:"bytes"`
	Lines     int64 `json:"lines"`
	Blank     int64 `json:"blank"`
	Comments  int64 `json:"comments"`
	Functions int64 `json:"functions"`
}

func (t *Totals) add(s summary.Summary) {
	t.Bytes += int64(s.Bytes)
	t.Lines += int64(s.Lines)
	t.Blank += int64(s.Blank)
	t.Comments += int64(s.Comments)
	t.Functions += int64(s.Functions)
}

// File is one line of the summary.
type File struct {
	Path string `json:"path"`
	summary.Summary
}

// Config is what the demo's cluster is made with: a death is noticed within about half a
// second.
func Config() layout.Config {
	return layout.Config{Heartbeat: 100 * time.Millisecond, DeadAfter: 500 * time.Millisecond}
}

const typedName = "countlines"

// Run runs the demo in a cluster of its own on a store. It returns an error if
// the store fails, a file can't be read, or a future fails.
func Run(ctx context.Context, db kv.Database, o Options) (Report, error) {
	if o.Workers == 0 {
		o.Workers = 3
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(int, int) {}
	}
	paths, err := Sources(o.Dir, o.Files)
	if err != nil {
		return Report{}, err
	}
	client, err := futures.New(ctx, db, futures.Options{Cluster: "demo", Config: Config(), Logger: o.Log})
	if err != nil {
		return Report{}, err
	}
	d := &demo{options: o, client: client, paths: paths}
	report, err := d.run(ctx)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return report, errors.Join(err, client.Close(closing))
}

// Sources are the Go files below dir in order of their paths, at most n of them. dir may be a link, as that of the
// sources of Go is in packages of some systems.
func Sources(dir string, n int) ([]string, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Type().IsRegular() && strings.HasSuffix(path, ".go") {
			paths = append(paths, filepath.Join(dir, strings.TrimPrefix(path, root)))
		}
		if n > 0 && len(paths) == n {
			return fs.SkipAll
		}
		return nil
	})
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("no Go files below %s: name a directory that has some", dir)
	}
	return paths, err
}

// demo is one run.
type demo struct {
	options  Options
	client   *futures.Client
	paths    []string
	workers  []*demoWorker
	executor *wasm.Executor
}

func (d *demo) run(ctx context.Context) (Report, error) {
	report := Report{Files: len(d.paths), Workers: d.options.Workers}
	function, err := d.publish(ctx, &report)
	if err != nil {
		return report, err
	}
	if d.executor != nil {
		defer d.executor.Close(context.WithoutCancel(ctx))
	}
	report.Function = function
	stop, err := d.start(ctx)
	if err != nil {
		return report, err
	}
	start := time.Now()
	got, err := d.process(ctx, function, &report)
	report.Took = time.Since(start)
	report.PerSecond = float64(len(d.paths)) / report.Took.Seconds()
	for _, w := range d.workers {
		report.Reaped += w.Stats().Reaped
	}
	if err := errors.Join(err, stop()); err != nil {
		return report, err
	}
	return report, d.compare(got, &report)
}

// publish makes the function known.
func (d *demo) publish(ctx context.Context, report *Report) (string, error) {
	if d.options.Typed {
		return "go:" + typedName, nil
	}
	module, err := modules.Of(d.client.Cluster()).Put(ctx, d.options.Module, "countlines")
	if err != nil {
		return "", err
	}
	executor, err := wasm.New(ctx, wasm.Config{Logger: d.options.Log})
	if err != nil {
		return "", err
	}
	d.executor = executor
	report.Isolation = string(executor.Isolation())
	// Compiled once, before the clock starts.
	if err := executor.Check(ctx, module.CID, d.options.Module); err != nil {
		return "", errors.Join(err, executor.Close(ctx))
	}
	return "wasm:countlines/summarize", nil
}

// demoWorker is a worker that can be killed.
type demoWorker struct {
	*workers.Worker
	seam seam.Worker
}

// start runs the workers.
func (d *demo) start(ctx context.Context) (stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	errs := make([]error, d.options.Workers)
	for i := range d.options.Workers {
		worker := &demoWorker{}
		o := workers.Options{Name: fmt.Sprintf("demo-%d", i+1), Slots: 2, Logger: d.options.Log, Seam: &worker.seam}
		if d.executor != nil {
			o.Modules = d.executor
		}
		w, err := workers.New(d.client, o)
		if err == nil {
			err = w.Register(futures.Define[[]byte, summary.Summary](typedName).Bind(
				func(_ context.Context, source []byte) (summary.Summary, error) { return summary.Of(source), nil }))
		}
		if err != nil {
			cancel()
			wg.Wait()
			return nil, err
		}
		worker.Worker = w
		d.workers = append(d.workers, worker)
		wg.Go(func() { errs[i] = w.Run(ctx) })
	}
	return func() error {
		cancel()
		wg.Wait()
		return errors.Join(errs...)
	}, nil
}

// inFlight bounds the files that are held in memory at a time.
const inFlight = 256

// process submits one future for each file and awaits all. One worker vanishes
// when a quarter have ended.
func (d *demo) process(ctx context.Context, function string, report *Report) ([][]byte, error) {
	results := make([][]byte, len(d.paths))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(inFlight)
	var mu sync.Mutex
	ended := 0
	for i, path := range d.paths {
		group.Go(func() (err error) {
			if results[i], err = d.one(ctx, function, path); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			ended++
			d.options.Progress(ended, len(d.paths))
			if report.Vanished == "" && 4*ended >= len(d.paths) {
				d.vanish(report, 2*ended >= len(d.paths))
			}
			return nil
		})
	}
	return results, group.Wait()
}

// one submits the future of a file, and awaits it.
func (d *demo) one(ctx context.Context, function, path string) ([]byte, error) {
	future, err := d.submit(ctx, function, path)
	if err != nil {
		return nil, err
	}
	r, err := future.Await(ctx)
	return r.Value, err
}

func (d *demo) submit(ctx context.Context, function, path string) (*futures.Future, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if d.options.Typed {
		task, err := futures.Define[[]byte, summary.Summary](typedName).Task(source)
		if err != nil {
			return nil, err
		}
		return d.client.Submit(ctx, task)
	}
	return d.client.Submit(ctx, futures.Task{Function: function, Args: source})
}

// vanish ends a worker that holds something, without a word to the store. If
// none does at this moment, it ends one only if it must.
func (d *demo) vanish(report *Report, must bool) {
	var victim *demoWorker
	held := 0
	for _, w := range d.workers {
		s := w.Stats()
		if n := s.Running + s.Waiting; n > held || (must && victim == nil) {
			victim, held = w, n
		}
	}
	if victim == nil {
		return
	}
	report.Vanished, report.HeldByIt = string(victim.ID()), held
	victim.seam.Vanish()
	d.options.Log.Info("a worker vanishes", "worker", report.Vanished, "holds", held)
}

// compare computes everything again, plainly and here.
func (d *demo) compare(got [][]byte, report *Report) error {
	start := time.Now()
	report.Wrong = []string{}
	var files []File
	for i, path := range d.paths {
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		want := summary.Of(source)
		same, err := d.same(got[i], want)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		name, err := filepath.Rel(d.options.Dir, path)
		if err != nil {
			name = path
		}
		if !same {
			report.Wrong = append(report.Wrong, name)
		}
		report.Total.add(want)
		files = append(files, File{Path: name, Summary: want})
	}
	report.LocalTook = time.Since(start)
	report.CheckClean = len(report.Wrong) == 0
	slices.SortFunc(files, func(a, b File) int {
		if a.Lines != b.Lines {
			return b.Lines - a.Lines
		}
		return strings.Compare(a.Path, b.Path)
	})
	report.Largest = files[:min(len(files), 10)]
	return nil
}

// Print writes the report for people.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "%-44s %9s %9s %9s\n", "largest files", "lines", "comments", "functions")
	for _, f := range r.Largest {
		path := f.Path
		if len(path) > 44 {
			path = "…" + path[len(path)-43:]
		}
		fmt.Fprintf(w, "%-44s %9d %9d %9d\n", path, f.Lines, f.Comments, f.Functions)
	}
	fmt.Fprintf(w, "%-44s %9d %9d %9d\n\n", fmt.Sprintf("all %d files, %d bytes", r.Files, r.Total.Bytes),
		r.Total.Lines, r.Total.Comments, r.Total.Functions)
	fmt.Fprintf(w, "%s on %d workers: %.1f s, %.0f files/s\n", r.Function, r.Workers, r.Took.Seconds(), r.PerSecond)
	fmt.Fprintf(w, "worker %s vanished midway with %d futures; %d were reaped and ran elsewhere\n",
		r.Vanished, r.HeldByIt, r.Reaped)
	if r.CheckClean {
		fmt.Fprintf(w, "all results equal a plain local computation (%.1f s)\n", r.LocalTook.Seconds())
	} else {
		fmt.Fprintf(w, "%d results differ from a plain local computation: %v\n", len(r.Wrong), r.Wrong)
	}
}
