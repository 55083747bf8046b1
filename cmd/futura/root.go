package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/batch/mongostore"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/internal/console"
)

// Exit codes. None is 2, with which a Go program ends that panics.
const (
	exitOK          = 0
	exitFailed      = 1
	exitNotFound    = 3
	exitStore       = 4
	exitTimeout     = 5
	exitUsage       = 64 // EX_USAGE of sysexits.h
	exitUnreadable  = 65 // EX_DATAERR
	exitInterrupted = 130
)

// app is one run of the command.
type app struct {
	in       io.Reader
	out, err io.Writer
	store    string
	cluster  string
	json     bool
	// outlivesServer is set for what goes on when the process that serves the
	// store comes back, however late, or takes its place.
	outlivesServer bool
	traces         *traces // nil for none
	// giveUpAfter is how long others go on without it, 0 for as long as it takes.
	giveUpAfter time.Duration
	// untilStopped is set for what runs until a signal stops it, which is then no interruption.
	untilStopped bool
}

// usageError is a mistake in how the command was called.
type usageError struct{ error }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	out, errOut = console.Guard(out), console.Guard(errOut)
	printed := &console.Output{Writer: out}
	a := &app{in: in, out: printed, err: errOut}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(printed)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	a.traces.close()
	if err == nil {
		err = printed.Err
	}
	return a.end(ctx, err, errOut)
}

// end says why a command ended, and returns its exit code.
func (a *app) end(ctx context.Context, err error, errOut io.Writer) int {
	stopped := a.untilStopped && ctx.Err() != nil
	if stopped && errors.Is(err, ctx.Err()) {
		return exitOK // it was stopped before it had begun
	}
	switch {
	case err == nil:
	case err == ctx.Err():
		fmt.Fprintln(errOut, "futura: interrupted")
	default:
		fmt.Fprintln(errOut, "futura:", console.Printable(said(err)))
	}
	if stopped {
		ctx = context.WithoutCancel(ctx)
	}
	return exitCode(ctx, err)
}

// said is the text of an error without the lines that an earlier one contains: the
// end of each part of a process may have the same cause.
func said(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSuffix(line, "\n")
		known := func(earlier string) bool { return strings.Contains(earlier, line) }
		if !slices.ContainsFunc(lines, known) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func exitCode(ctx context.Context, err error) int {
	var usage usageError
	var answered *apiError
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil:
		return exitInterrupted
	case isTaken(err):
		return exitStore
	case errors.Is(err, kv.ErrCorrupt), errors.Is(err, layout.ErrOldFormat), errors.Is(err, layout.ErrNewerRecord):
		return exitUnreadable
	case errors.As(err, &usage), fdbmodel.IsMistake(err), isRefused(err), errors.Is(err, kvopen.ErrBadName):
		return exitUsage
	case errors.As(err, &answered) && answered.Status == http.StatusNotFound, errors.Is(err, fdbmodel.ErrNotFound),
		errors.Is(err, futures.ErrBadPromiseToken), errors.Is(err, stack.ErrNoToken):
		return exitNotFound
	case errors.As(err, &answered) && answered.mistake():
		return exitUsage
	case errors.Is(err, mongostore.ErrUnreachable), errors.Is(err, kv.ErrUnavailable),
		errors.Is(err, kv.ErrUnknownResult):
		return exitStore // whether or not its time was up meanwhile
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	case errors.Is(err, futures.ErrFailed), errors.Is(err, errBroken),
		errors.Is(err, errItemsFailed), errors.Is(err, errRefused):
		return exitFailed
	default:
		return exitStore
	}
}

// isTaken reports whether err says that nothing can listen at an address now: another process does, or the machine
// has not got the address yet. Either may pass.
func isTaken(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:     "futura",
		Version: version,
		Short:   "A durable futures cluster: submit work, await results, lose nothing when a process dies",
		Long: "futura runs a durable futures cluster: submit work, await results, lose nothing when a process dies.\n\n" +
			"Exit codes: 0 done, 1 a future failed or a check found a problem, 3 not found, 4 the store can't serve, " +
			"5 the time is up, 64 an invalid call, 65 the store can't be read, 130 interrupted.",
		SilenceErrors: true, SilenceUsage: true,
		Example: "  futura dev\n  futura function put count.wasm --alias count\n" +
			"  futura submit wasm:count --args-file main.go --wait",
	}
	root.SetVersionTemplate("futura {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{flagError(err)} })
	flags := root.PersistentFlags()
	flags.StringVar(&a.store, "store", defaultStore,
		"the store: memory:, embedded:DIR, remote:unix:PATH, remote:tcp:HOST:PORT or fdb:CLUSTERFILE. embedded:DIR keeps on "+
			"disk what its memory has no room for: embedded:DIR?memory=2GiB (default: a quarter of the machine's); with "+
			"?sync=off a crash may lose the last milliseconds (FUTURA_STORE)")
	flags.StringVar(&a.cluster, "cluster", futures.DefaultCluster, "the name of the cluster (FUTURA_CLUSTER)")
	flags.DurationVar(&a.giveUpAfter, "give-up-after", 30*time.Second,
		"how long a command goes on when the process that serves its store is gone; 0 for ever (FUTURA_GIVE_UP_AFTER)")
	flags.BoolVar(&a.json, "json", false, "print JSON: one object or array")
	flags.String(configFlag, "",
		"a file of settings (FUTURA_CONFIG; default: what futura.yaml here may set, if it exists)")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.configure(cmd); err != nil && !explains(cmd) {
			return err
		}
		return a.startTraces(cmd.Context())
	}
	a.addCommands(root)
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.Long = console.Folded(cmd.Long)
		listByHeading(cmd)
		help(cmd, args)
	})
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	return needsCommand(root)
}

// exactly makes a wrong number of arguments a usage error.
func exactly(n int) cobra.PositionalArgs { return usage(cobra.ExactArgs(n)) }

func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w: use %s", err, strings.TrimSuffix(cmd.UseLine(), " [flags]"))}
		}
		return nil
	}
}

// open opens a store and a cluster that are there, and calls fn with a client.
// A mistaken name would else be a new cluster, which looks like one that has lost
// everything.
func (a *app) open(ctx context.Context, fn func(*futures.Client) error) error {
	if err := storeExists(a.store); err != nil {
		return err
	}
	return a.with(ctx, futures.Options{Cluster: a.cluster, Existing: true}, fn)
}

// openOrMake opens the store and the cluster, which are made if they are not
// there, and calls fn with a client.
func (a *app) openOrMake(ctx context.Context, fn func(*futures.Client) error) error {
	return a.with(ctx, futures.Options{Cluster: a.cluster}, fn)
}

func (a *app) with(ctx context.Context, o futures.Options, fn func(*futures.Client) error) (err error) {
	db, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if base := configFor(db); o.Config.Heartbeat == 0 && o.Config.DeadAfter == 0 {
		o.Config.Heartbeat, o.Config.DeadAfter = base.Heartbeat, base.DeadAfter
	}
	o.Tracer = a.traces.tracer()
	client, err := futures.New(ctx, db, o)
	if o.Existing && errors.Is(err, fdbmodel.ErrNotFound) {
		return fmt.Errorf("%w, %s: name another with --cluster or --store, or create it with futura dev, worker or submit",
			err, a.store)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close(context.WithoutCancel(ctx))) }()
	reapLost(db, client.Cluster(), a.notices())
	return fn(client)
}

// defaultStore is the store that commands use unless one is named.
const defaultStore = "embedded:./.futura"

// inUseWait is how long a command waits for others that have the store open and
// don't serve it.
const inUseWait = 10 * time.Second

// openStore opens the store, through the process that serves it where that has
// it.
func (a *app) openStore(ctx context.Context) (kv.Database, error) {
	o := kvopen.Options{TakeOver: true, GiveUpAfter: a.giveUpAfter, InUseWait: inUseWait, Logger: a.notices()}
	if a.outlivesServer {
		o.GiveUpAfter, o.Share = 0, true
		if _, here := embeddedDir(a.store); here { // which this process serves, or will
			if err := enoughFiles(); err != nil {
				return nil, err
			}
		}
	}
	return kvopen.Open(ctx, a.store, o)
}

// storeExists returns ErrNotFound for an embedded store that does not exist.
func storeExists(store string) error {
	dir, ok := embeddedDir(store)
	if !ok || dir == "" {
		return nil
	}
	missing := ""
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		missing = "there is no directory " + dir
	} else if err == nil && !embedded.Exists(dir) {
		missing = "the directory " + dir + " holds no store"
	}
	if missing == "" {
		return nil
	}
	return fmt.Errorf("store %s: %w: %s: name another one, or create it with futura dev or futura submit", store,
		fdbmodel.ErrNotFound, missing)
}

func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// say prints a value, or with --json its JSON form.
func (a *app) say(form any, value ...any) error {
	if a.json {
		return a.printJSON(form)
	}
	_, err := io.WriteString(a.out, console.Printable(fmt.Sprintln(value...)))
	return err
}

// table prints rows as the terminal has room for.
func (a *app) table(rows [][]string) error { return console.Table(a.out, rows) }

// width is how many columns of characters the output has.
func (a *app) width() int { return console.Width(a.out) }

// show prints a table, or with --json the JSON form of it.
func (a *app) show(form any, rows [][]string) error {
	if a.json {
		return a.printJSON(form)
	}
	return a.table(rows)
}
