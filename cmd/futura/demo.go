package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/futura-run/futura/examples"
	"github.com/futura-run/futura/internal/demo"
)

// errDiffers is returned when a result is not what it should be.
var errDiffers = errors.New("results differ from the local computation")

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
		Example: "  futura demo\n  futura demo --all\n  futura demo --dir . --typed --json",
		Args:    exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all {
				o.Files = 0
			}
			return a.demo(cmd.Context(), o, cmd.Flags().Changed("store"))
		},
	}
	cmd.Flags().StringVar(&o.Dir, "dir", "", "where the Go files are (default: the Go installation's src)")
	cmd.Flags().IntVar(&o.Files, "files", 2000, "how many files to take at most")
	cmd.Flags().BoolVar(&all, "all", false, "take all files")
	cmd.Flags().BoolVar(&o.Typed, "typed", false, "run a typed Go function instead of a WASM module")
	cmd.Flags().IntVar(&o.Workers, "workers", 3, "how many workers, one of which vanishes")
	return cmd
}

func (a *app) demo(ctx context.Context, o demo.Options, named bool) (err error) {
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
		root, err := goTool(ctx, "", "env", "GOROOT")
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
		if o.Module, err = buildCountlines(ctx, filepath.Join(dir, "function")); err != nil {
			return err
		}
	}
	if !named {
		a.store = "embedded:" + filepath.Join(dir, "store")
	}
	db, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	o.Progress = a.progress("files")
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

// terminal returns standard error if it is a terminal, nil otherwise.
func (a *app) terminal() *os.File {
	if s, ok := a.err.(*screen); ok {
		return s.file
	}
	return nil
}

// barInterval is how often a bar moves.
const barInterval = 100 * time.Millisecond

// progress shows a bar with rate and time left, on a terminal only.
func (a *app) progress(unit string) func(done, all int) {
	f := a.terminal()
	if f == nil {
		return nil
	}
	var bar *progressbar.ProgressBar
	return func(done, all int) {
		if bar == nil {
			bar = progressbar.NewOptions(all, progressbar.OptionSetWriter(f), progressbar.OptionShowCount(),
				progressbar.OptionShowIts(), progressbar.OptionSetItsString(unit), progressbar.OptionSetPredictTime(true),
				progressbar.OptionThrottle(barInterval), progressbar.OptionClearOnFinish())
		}
		_ = bar.Set(done)
	}
}

// buildCountlines builds the example function from the source in this binary.
func buildCountlines(ctx context.Context, dir string) ([]byte, error) {
	if err := os.CopyFS(filepath.Join(dir, "examples"), examples.Countlines()); err != nil {
		return nil, err
	}
	module := "module github.com/futura-run/futura\n\ngo 1.26\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(module), 0o600); err != nil {
		return nil, err
	}
	out := filepath.Join(dir, "countlines.wasm")
	_, err := goTool(ctx, dir, "build", "-trimpath", "-ldflags=-s -w", "-o", out, "./examples/wasm/countlines")
	if err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// goTool runs the Go toolchain, for WebAssembly where it builds.
func goTool(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = os.Environ()
	if dir != "" {
		cmd.Env = append(cmd.Env, "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	}
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return string(out), nil
}
