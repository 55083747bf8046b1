// Command futura-bench measures what Futura costs, and shows how it runs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/internal/bench"
	"github.com/futura-run/futura/internal/console"
	"github.com/futura-run/futura/workers/wasm"
)

// Exit codes, as those of futura.
const (
	exitOK          = 0
	exitDiffers     = 1
	exitFailed      = 4
	exitUsage       = 64
	exitInterrupted = 130
)

// inUseWait is how long a command waits for others that have the store open and don't serve it.
const inUseWait = 10 * time.Second

// version is set by the linker.
var version = "dev"

// app is one run of the command.
type app struct {
	out, err io.Writer
	store    string
	json     bool
}

// usageError is a mistake in how the command was called.
type usageError struct{ error }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

func main() {
	wasm.ChildMain()
	bench.ChildMain()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	printed := &console.Output{Writer: console.Guard(out)}
	a := &app{out: printed, err: console.Guard(errOut)}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(printed)
	root.SetErr(a.err)
	err := errors.Join(root.ExecuteContext(ctx), printed.Err)
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil:
		fmt.Fprintln(a.err, "futura-bench: interrupted")
		return exitInterrupted
	}
	fmt.Fprintln(a.err, "futura-bench:", console.Printable(err.Error()))
	switch {
	case errors.As(err, new(usageError)), errors.Is(err, kvopen.ErrBadName):
		return exitUsage
	case errors.Is(err, errDiffers):
		return exitDiffers
	default:
		return exitFailed
	}
}

// root measures what it is told, and has the other commands below it.
func (a *app) root() *cobra.Command {
	root := a.benchCommand()
	root.Version, root.SilenceErrors, root.SilenceUsage = version, true, true
	root.SetVersionTemplate("futura-bench {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := root.PersistentFlags()
	flags.StringVar(&a.store, "store", "",
		"the store: memory:, embedded:DIR, embedded:DIR?sync=off, remote:unix:PATH, remote:tcp:HOST:PORT "+
			"or fdb:CLUSTERFILE (default: a temporary directory)")
	flags.BoolVar(&a.json, "json", false, "print JSON: one object or array")
	root.AddCommand(a.demoCommand(), a.pageCommand())
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.Long = console.Folded(cmd.Long)
		help(cmd, args)
	})
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	return root
}

// exactly makes a wrong number of arguments a usage error.
func exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := cobra.ExactArgs(n)(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w: use %s", err, strings.TrimSuffix(cmd.UseLine(), " [flags]"))}
		}
		return nil
	}
}

func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
