package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/internal/console"
	"github.com/futura-run/futura/internal/demo"
)

// errDiffers is returned when a result is not what it should be.
var errDiffers = errors.New("results differ from the local computation")

// giveUpAfter is how long a demo goes on without the process that serves its store.
const giveUpAfter = 30 * time.Second

func (a *app) demoCommand() *cobra.Command {
	var o demo.Options
	var all bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a function over many source files while a worker dies",
		Long: "demo builds a WASM function, submits one future for each Go source file below a directory, lets one of " +
			"its workers vanish midway, awaits all, and compares the results with a plain local computation. It needs " +
			"the Go toolchain on the PATH to build the function. Its store is a temporary directory unless --store is " +
			"given.",
		Example: "  futura-bench demo\n  futura-bench demo --all\n  futura-bench demo --dir . --typed --json",
		Args:    exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all {
				o.Files = 0
			}
			return a.demo(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Dir, "dir", "", "where the Go files are (default: the Go installation's src)")
	cmd.Flags().IntVar(&o.Files, "files", 2000, "how many files to take at most")
	cmd.Flags().BoolVar(&all, "all", false, "take all files")
	cmd.Flags().BoolVar(&o.Typed, "typed", false, "run a typed Go function instead of a WASM module")
	cmd.Flags().IntVar(&o.Workers, "workers", 3, "how many workers, one of which vanishes")
	return cmd
}

func (a *app) demo(ctx context.Context, o demo.Options) (err error) {
	if o.Workers < 2 || o.Files < 0 {
		return usageError{fmt.Errorf("%d workers and %d files: one worker vanishes, so at least 2 are needed",
			o.Workers, o.Files)}
	}
	dir, err := os.MkdirTemp("", "futura-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.Dir == "" {
		root, err := demo.GoTool(ctx, "", "env", "GOROOT")
		if err != nil {
			return err
		}
		o.Dir = filepath.Join(strings.TrimSpace(root), "src")
	}
	if _, err := demo.Sources(o.Dir, 1); err != nil {
		return usageError{err}
	}
	if !o.Typed {
		fmt.Fprintln(a.err, "building the WASM function")
		if o.Module, err = demo.BuildCountlines(ctx, filepath.Join(dir, "function")); err != nil {
			return err
		}
	}
	db, err := kvopen.Open(ctx, cmp.Or(a.store, "embedded:"+filepath.Join(dir, "store")), kvopen.Options{
		GiveUpAfter: giveUpAfter, InUseWait: inUseWait,
		Logger: slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	o.Progress = console.Progress(a.err, "files")
	report, err := demo.Run(ctx, db, o)
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(&report)
	} else {
		report.Print(a.out)
	}
	if err == nil && !report.CheckClean {
		err = errDiffers
	}
	return err
}
