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

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel/kvopen"
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
			"The store is a temporary directory unless --store is given.",
		Example: "  futura bench burndown\n  futura bench all --json\n  futura bench latency --store fdb:fdb.cluster",
		Args:    exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			scenarios := args
			if args[0] == "all" {
				scenarios = bench.Scenarios()
			}
			for _, s := range scenarios {
				if err := a.bench(cmd.Context(), s, o, cmd.Flags().Changed("store"), profile); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&o.Futures, "futures", 0, "number of futures (default: the scenario's own)")
	cmd.Flags().IntVar(&o.Workers, "workers", 0, "number of workers (default: the scenario's own)")
	cmd.Flags().StringVar(&profile, "cpu-profile", "", "write a CPU profile to this file")
	return cmd
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

func (a *app) bench(ctx context.Context, scenario string, o bench.Options, named bool, profile string) (err error) {
	if !slices.Contains(bench.Scenarios(), scenario) {
		return usageError{fmt.Errorf("no scenario %q: use one of %v, or all", scenario, bench.Scenarios())}
	}
	o.Store = a.store
	o.Log = slog.New(slog.NewTextHandler(a.err, nil))
	if !named {
		dir, err := os.MkdirTemp(".", ".futura-bench-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		o.Store, o.Dir = "embedded:"+filepath.Join(dir, "store"), dir
	}
	db, err := kvopen.Open(ctx, o.Store, kvopen.Options{})
	if err != nil {
		return err
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
		stop, err := profileCPU(profile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	report, err := bench.Run(ctx, db, scenario, o)
	if err != nil {
		return err
	}
	return a.printJSON(&report)
}
