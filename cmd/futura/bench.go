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
)

func (a *app) benchCommand() *cobra.Command {
	var o bench.Options
	var profile string
	names := strings.Join(bench.Scenarios(), ", ")
	cmd := &cobra.Command{
		Use:   "bench SCENARIO",
		Short: "Measure a whole cluster: " + names + ", or all",
		Long: "bench measures client, store and workers in one process, everything synced, results kept. The scenarios:\n\n" +
			"  burndown    200,000 no-op futures first, then workers; counted in the client's hands\n" +
			"  stream      16 producers submit one by one while workers run\n" +
			"  latency     one at a time, from submit to awaited\n" +
			"  backlog     1,000 and 1,000,000 pending, held by a feeder; ratio of the rates\n" +
			"  contention  64 and 1 workers with claim transactions of their own; ratio of the rates\n" +
			"  await       100,000 futures awaited by one client; from the end of the last run to the last result\n" +
			"  idle        1,000 workers without work; what they ask of the store per second\n" +
			"  batch       the items of a batch, from its submit to its end; ratio of the rate to that of plain futures\n" +
			"  wasm        a WASM function of 0.3 ms, fresh instance each; ratio of its time to a plain runtime that\n" +
			"              can be stopped, and to one that can't\n\n" +
			"Rates depend on the load of the machine. What holds on a busy one is the cost of a future: transactions,\n" +
			"mutations and reads of the store; processor time in user and system mode, of this process and of the\n" +
			"processes of functions that it started; and allocated objects and bytes of this process. idle has the\n" +
			"same for each second. A store on a server (fdb:, remote:) spends processor time of its own, which is\n" +
			"not in it.\n\n" +
			"bench prints a table for each scenario, and with --json one object, or an array for all. It shows its\n" +
			"progress on standard error. The store is a temporary directory unless --store is given.",
		Example: "  futura bench burndown\n  futura bench all --json\n  futura bench latency --store fdb:fdb.cluster",
		Args:    exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "all" {
				return a.benchAll(cmd.Context(), o, cmd.Flags().Changed("store"), profile)
			}
			report, err := a.bench(cmd.Context(), args[0], o, cmd.Flags().Changed("store"), profile)
			switch {
			case err != nil:
				return err
			case a.json:
				return a.printJSON(report)
			default:
				return table(a.out, benchRows(report))
			}
		},
	}
	cmd.Flags().IntVar(&o.Futures, "futures", 0, "number of futures (default: the scenario's own)")
	cmd.Flags().IntVar(&o.Workers, "workers", 0, "number of workers (default: the scenario's own)")
	cmd.Flags().StringVar(&profile, "cpu-profile", "", "write a CPU profile to this file")
	return cmd
}

// benchAll measures one scenario after the other.
func (a *app) benchAll(ctx context.Context, o bench.Options, named bool, profile string) error {
	var reports []*bench.Report
	for n, scenario := range bench.Scenarios() {
		report, err := a.bench(ctx, scenario, o, named, profile)
		if err != nil {
			return err
		}
		if reports = append(reports, report); a.json {
			continue
		}
		if n > 0 {
			fmt.Fprintln(a.out)
		}
		if err := table(a.out, benchRows(report)); err != nil {
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

func (a *app) bench(ctx context.Context, scenario string, o bench.Options, named bool, profile string,
) (report *bench.Report, err error) {
	if !slices.Contains(bench.Scenarios(), scenario) {
		return nil, usageError{fmt.Errorf("no scenario %q: use one of %v, or all", scenario, bench.Scenarios())}
	}
	o.Store = a.store
	if !named {
		dir, failed := os.MkdirTemp(".", ".futura-bench-")
		if failed != nil {
			return nil, failed
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		o.Store, o.Dir = "embedded:"+filepath.Join(dir, "store"), dir
	}
	db, err := kvopen.Open(ctx, o.Store, kvopen.Options{Exclusive: true})
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
	f := a.terminal()
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
				bar, shown = benchBar(f, scenario+": "+phase, all), phase
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

// benchBar is a bar for a phase, or a spinner for one that counts nothing.
func benchBar(f *os.File, description string, all int) *progressbar.ProgressBar {
	if all == 0 {
		all = -1
	}
	return progressbar.NewOptions(all, progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(description),
		progressbar.OptionShowCount(), progressbar.OptionSetWidth(20), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetSpinnerChangeInterval(0)) // it turns when it is drawn
}
