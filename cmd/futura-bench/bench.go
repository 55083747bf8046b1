package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/internal/bench"
	"github.com/futura-run/futura/internal/console"
)

func (a *app) benchCommand() *cobra.Command {
	var o bench.Options
	var profile string
	cmd := &cobra.Command{
		Use:   "futura-bench SCENARIO",
		Short: "Measure the rates and costs of a whole cluster",
		Long: "futura-bench measures client, store and workers in one process, and for objects and hints in two. Every " +
			"commit is synced, and results are kept. SCENARIO is one of these, or all:\n\n" +
			"  burndown    200,000 no-op futures that are submitted before workers start\n" +
			"  stream      16 producers submit one by one while workers run\n" +
			"  latency     one future at a time, from submit to result\n" +
			"  backlog     the rates with 1,000 and with 1,000,000 pending, and their ratio\n" +
			"  contention  the rates of 64 workers and of 1, each claiming alone; their ratio\n" +
			"  await       100,000 futures awaited by one client: last run to last result\n" +
			"  idle        1,000 workers without work: their requests to the store\n" +
			"  batch       the items of a batch; the ratio of their rate to plain futures\n" +
			"  graph       100,000 futures with two inputs each, and the ratio of their rate to\n" +
			"              futures without; diamonds; a chain of 1,000; one with 10,000 inputs,\n" +
			"              and one that 10,000 use; --futures is also that number, up to 100,000\n" +
			"  lanes       20,000 futures in lanes that are never full, in 100 of width 10, 1,000 in one of 1\n" +
			"  processes   the same lanes, and a graph, with each worker in a process of its own: conflicts\n" +
			"  steps       5,000 futures of ten steps each, and as many plain ones: how many times as\n" +
			"              long those with steps take, and what each costs\n" +
			"  actors      20,000 calls of 1,000 actors, and 1,000 of one with a backlog, each beside plain\n" +
			"              futures; 300 calls of one, one after the other\n" +
			"  wasm        a WASM function of 0.3 ms, in a fresh instance each; the ratios of\n" +
			"              its time to plain runtimes that can and can't be stopped\n" +
			"  objects     Put and Get of 1 kB and 10 MB in an object store: within a process,\n" +
			"              between two on one host, over a socket; the ratios of a copy in\n" +
			"              memory, and of a bare socket, to their times\n" +
			"  hints       latency between two processes, with hints and without; their ratio\n" +
			"  peers       a batch on peers over loopback; ratio to the same on workers of the cluster,\n" +
			"              and with --b7s to the same on a head of b7s with workers\n" +
			"  load        the latency of futures that arrive at 10 to 90 % of the peak rate\n" +
			"  workers     the rate of functions that wait for 2 ms, with 1 to 16 workers\n" +
			"  pending     the rate with 1,000 to 1,000,000 pending\n" +
			"  history     1,000,000 futures that have ended, of 500 bytes: the rate, and its ratio to\n" +
			"              that of the first ones; the most memory; a read of an old one\n" +
			"  pressure    the rate beside a slow reader, a slow backup, a large await, a worker that dies and\n" +
			"              one that restarts; the ratio to the rate before and after, and when it is back\n\n" +
			"Rates depend on the load of the machine. The cost of a future does not: transactions, mutations and reads " +
			"of the store; processor time in user and system mode, of this process and the processes of functions that " +
			"it started; objects and bytes that this process allocates. For idle these are per second. The processor " +
			"time of a store on a server (fdb:, remote:) is not included.\n\n" +
			"futura-bench prints a table for each scenario; with --json one object, or for all an array. Progress goes to " +
			"standard error. The store is a temporary directory unless --store is given.",
		Example: "  futura-bench burndown\n  futura-bench all --json\n  futura-bench latency --store fdb:fdb.cluster",
		Args:    exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "all" {
				return a.benchAll(cmd.Context(), o, profile)
			}
			report, err := a.bench(cmd.Context(), args[0], o, profile)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(report)
			}
			return console.Table(a.out, benchRows(report))
		},
	}
	cmd.Flags().IntVar(&o.Futures, "futures", 0, "number of futures (default: the scenario's own)")
	cmd.Flags().IntVar(&o.Workers, "workers", 0, "number of workers (default: the scenario's own)")
	cmd.Flags().StringVar(&o.B7S, "b7s", os.Getenv("FUTURA_B7S_BATCHED"),
		"program of b7s's node to compare peers with (default: $FUTURA_B7S_BATCHED)")
	cmd.Flags().StringVar(&o.B7SStore, "b7s-store", "", "URI of a MongoDB, for nodes of b7s that keep batches there")
	cmd.Flags().StringVar(&profile, "cpu-profile", "", "write a CPU profile to this file")
	return cmd
}

// benchAll measures one scenario after the other.
func (a *app) benchAll(ctx context.Context, o bench.Options, profile string) error {
	var reports []*bench.Report
	for n, scenario := range bench.Scenarios() {
		report, err := a.bench(ctx, scenario, o, profile)
		if err != nil {
			return err
		}
		if reports = append(reports, report); a.json {
			continue
		}
		if n > 0 {
			fmt.Fprintln(a.out)
		}
		if err := console.Table(a.out, benchRows(report)); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(reports)
	}
	return nil
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// profileCPU writes a CPU profile until it is stopped.
func profileCPU(path string) (stop func() error, err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

func (a *app) bench(ctx context.Context, scenario string, o bench.Options, profile string,
) (report *bench.Report, err error) {
	if !slices.Contains(bench.Scenarios(), scenario) {
		return nil, usageError{fmt.Errorf("no scenario %q: use %s or all", scenario,
			strings.Join(bench.Scenarios(), ", "))}
	}
	if o.Futures < 0 || o.Workers < 0 {
		return nil, usageError{fmt.Errorf("--futures %d, --workers %d: neither may be negative; 0 is the "+
			"scenario's own number", o.Futures, o.Workers)}
	}
	named := a.store != ""
	o.Store = a.store
	if !named {
		dir, failed := os.MkdirTemp(".", ".futura-bench-")
		if failed != nil {
			return nil, failed
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		o.Store, o.Dir = "embedded:"+filepath.Join(dir, "store"), dir
	}
	db, err := kvopen.Open(ctx, o.Store, kvopen.Options{Exclusive: true, InUseWait: inUseWait})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if !named {
		o.Store = "embedded"
	}
	if path, found := strings.CutPrefix(o.Store, "embedded:"); found && o.Dir == "" {
		// A path that is written in another way is not timed.
		if parent := filepath.Dir(filepath.Clean(path)); isDirectory(parent) {
			o.Dir = parent
		}
	}
	if profile != "" {
		stop, failed := profileCPU(profile)
		if failed != nil {
			return nil, failed
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	defer a.followBench(scenario, &o)()
	measured, err := bench.Run(ctx, db, scenario, o)
	return &measured, err
}

// benchLook is how often the progress of a benchmark is drawn: seldom enough that
// it costs nothing that could be measured.
const benchLook = 250 * time.Millisecond

// followBench has the progress of a run shown until stop: as a bar on a terminal,
// as a line for each phase elsewhere.
func (a *app) followBench(scenario string, o *bench.Options) (stop func()) {
	f := console.Terminal(a.err)
	if f == nil {
		o.Log = slog.New(slog.NewTextHandler(a.err, nil))
		return func() {}
	}
	o.Progress = new(bench.Progress)
	ended, drawn := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(drawn)
		ticker := time.NewTicker(benchLook)
		defer ticker.Stop()
		var bar *progressbar.ProgressBar
		var shown string
		for {
			phase, done, all := o.Progress.Now()
			if phase != shown || bar == nil {
				if bar != nil {
					_ = bar.Clear()
				}
				bar, shown = console.Stage(f, scenario+": "+phase, all), phase
			}
			_ = bar.Set(done)
			select {
			case <-ticker.C:
			case <-ended:
				_ = bar.Clear()
				return
			}
		}
	}()
	return func() { close(ended); <-drawn }
}
