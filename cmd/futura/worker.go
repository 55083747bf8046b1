package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/socket"
	"github.com/futura-run/futura/internal/trust"
	"github.com/futura-run/futura/workers"
	"github.com/futura-run/futura/workers/wasm"
)

// workerFlags are what the commands with a worker take.
type workerFlags struct {
	options workers.Options
	labels  []string
	cache   string
	memory  int64
	verbose bool
	// peer is how the command worker reaches heads, and metrics where it serves its own.
	peer    peerWorkerFlags
	metrics metricsFlags
}

func (f *workerFlags) add(flags *pflag.FlagSet) {
	o := &f.options
	flags.StringVar(&o.Name, "name", "", "the worker's name, for people")
	flags.StringVar(&o.Address, "address", "",
		"an address such as 10.0.0.1:7000; a worker takes over from the previous one at its address")
	flags.StringSliceVar(&o.Queues, "queue", []string{layout.DefaultQueue}, "a queue to serve; may be repeated")
	flags.StringArrayVar(&f.labels, "label", nil, "NAME=VALUE, which futures may require; may be repeated")
	flags.IntVar(&o.Slots, "slots", 0, "how many futures run at a time (default: one per core)")
	flags.Int64Var(&o.CPU, "cpu", 0, "the CPU that futures share, in thousandths of a core (default: the machine's)")
	flags.Int64Var(&o.RAM, "ram", 0, "the memory that futures share, in bytes (default: the machine's)")
	flags.Int64Var(&o.GPU, "gpu", 0, "the GPUs that futures share, in thousandths of a device")
	flags.DurationVar(&o.DrainTimeout, "drain", 25*time.Second, "how long running futures may go on after Ctrl-C")
	flags.BoolVar(&o.NoHints, "no-hints", false, noHintsUsage)
	flags.BoolVar(&f.verbose, "verbose", false, "log each request and each step")
	under(flags, ofWorker)
	flags.StringVar(&f.cache, "module-cache", "",
		"a directory for compiled modules (default: futura/modules in the user's cache directory)")
	flags.Int64Var(&f.memory, "module-memory", 0,
		"the memory limit of a module in bytes, unless its future sets one (default: 256 MiB)")
	flags.DurationVar(&o.ModuleTimeout, "module-timeout", workers.DefaultModuleTimeout,
		"how long a module may run whose future has no timeout; 0 for no limit: it then keeps its slot until it ends")
	p := &o.Policy
	flags.DurationVar(&p.DefaultTimeout, "default-timeout", 0,
		"the timeout of futures that have none (default: the cluster's, or none)")
	flags.DurationVar(&p.MaxTimeout, "max-timeout", 0, "the longest timeout; longer ones are cut (default: the cluster's)")
	flags.Int64Var(&p.MaxMemory, "max-memory", 0,
		"the most memory of a module in bytes, whatever its future requires (default: the cluster's)")
	flags.Int64Var(&p.MaxOutput, "max-output", 0, "the largest result in bytes (default: the cluster's, or 64 MiB)")
	under(flags, ofFunctions)
	flags.Int64Var(&o.Objects.Memory, "object-memory", 0,
		"the memory in bytes for results that stay with the worker (default: none, all go to the store)")
	flags.Int64Var(&o.Objects.Disk, "object-disk", 0, "the bytes of --object-dir for more of them (default: 10 GiB)")
	flags.Int64Var(&o.Objects.Above, "object-above", 0,
		"the bytes up to which results go to the store all the same (default: 4096; -1 for none)")
	flags.StringVar(&o.Objects.Dir, "object-dir", "",
		"a private directory for results that memory has no room for, and for those that wait there after a stop for "+
			"the next worker with it; a kill leaves none")
	flags.StringVar(&o.Objects.Listen, "object-listen", "",
		"an address for workers to get them at; beyond loopback it needs --object-plain-text (default: a socket)")
	flags.BoolVar(&o.Objects.PlainText, "object-plain-text", false,
		"let --object-listen be beyond loopback, where others can read and change objects on their way")
	under(flags, ofObjects)
}

const noHintsUsage = "neither send hints to workers of other processes nor heed theirs: all goes through the store"

// check reads the labels, and refuses queues and slots that were set to nothing,
// which would else be their defaults.
func (f *workerFlags) check(flags *pflag.FlagSet) (err error) {
	if f.options.Labels, err = layout.ParseLabels(f.labels); err != nil {
		return usageError{fmt.Errorf("--label: %w", err)}
	}
	if f.options.ModuleTimeout == 0 {
		f.options.ModuleTimeout = -1 // by choice: 0 is the default of the options
	}
	switch {
	case len(f.options.Queues) == 0 || slices.Contains(f.options.Queues, ""):
		return usageError{errors.New("--queue is empty: name a queue, or leave the flag out to serve the queue default")}
	case isSet(flags, "slots") && f.options.Slots < 1:
		return usageError{fmt.Errorf("--slots %d: use 1 or more, or leave the flag out for one per core", f.options.Slots)}
	case f.options.Objects.Memory < 0 || f.options.Objects.Disk < 0:
		return usageError{errors.New("--object-memory and --object-disk are numbers of bytes, not below 0")}
	case f.options.Objects.Memory == 0 && f.options.Objects != workers.ObjectOptions{}:
		return usageError{errors.New("--object-above, --object-dir, --object-disk, --object-listen and --object-plain-text " +
			"need --object-memory")}
	case f.options.Objects.PlainText && f.options.Objects.Listen == "":
		return usageError{errors.New("--object-plain-text needs --object-listen: it is about that address")}
	case f.options.Objects.Disk != 0 && f.options.Objects.Dir == "":
		return usageError{errors.New("--object-disk needs --object-dir: it is how many bytes may be there")}
	case f.options.Objects.Above < -1:
		return usageError{fmt.Errorf("--object-above %d: use a number of bytes, or -1 for none", f.options.Objects.Above)}
	case f.options.Objects.Listen != "" && !isAddress(f.options.Objects.Listen):
		return usageError{fmt.Errorf("--object-listen %q: use HOST:PORT, such as 10.0.0.1:7001", f.options.Objects.Listen)}
	case f.options.Objects.Listen != "" && !f.options.Objects.PlainText &&
		socket.LeavesMachine("tcp", f.options.Objects.Listen):
		return usageError{fmt.Errorf("--object-listen %s has no encryption: others can read and change objects on their "+
			"way: use an address of loopback, or --object-plain-text in a network that you trust", f.options.Objects.Listen)}
	case f.memory < 0:
		return usageError{fmt.Errorf("--module-memory %d: use a number of bytes, or 0 for the default", f.memory)}
	}
	return nil
}

func isAddress(text string) bool {
	_, _, err := net.SplitHostPort(text)
	return err == nil
}

// logger writes to standard error.
func (a *app) logger(verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(a.traces.logs(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level})))
}

// notices is the logger of a command that prints something else: it says what
// went wrong, and nothing of what went well.
func (a *app) notices() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// running is a worker that runs, with the executor of its modules.
type running struct {
	*workers.Worker
	executor *wasm.Executor
	cancel   context.CancelFunc
	// done is closed when the worker has ended, with err.
	done chan struct{}
	err  error
}

// startWorker runs a worker for WASM modules until stop is called.
func startWorker(ctx context.Context, cluster *fdbmodel.Cluster, o workers.Options, c wasm.Config) (*running, error) {
	c.Logger = o.Logger
	executor, err := wasm.New(ctx, c)
	if errors.Is(err, wasm.ErrBadConfig) {
		return nil, usageError{err}
	}
	if err != nil {
		return nil, err
	}
	o.Modules = executor
	w, err := workers.FromCluster(cluster, o)
	if err != nil {
		return nil, usageError{errors.Join(err, executor.Close(ctx))}
	}
	// The worker ends by stop, which lets it drain while the store is open.
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &running{Worker: w, executor: executor, cancel: cancel, done: make(chan struct{})}
	go func() {
		r.err = w.Run(working)
		close(r.done)
	}()
	return r, nil
}

// ended is closed when the worker has ended: never if there is none.
func (r *running) ended() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.done
}

// stop lets the worker drain, and ends it.
func (r *running) stop() error {
	if r == nil {
		return nil
	}
	r.cancel()
	<-r.done
	closing, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return errors.Join(r.err, r.executor.Close(closing))
}

func (a *app) workerCommand() *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run a worker for WASM functions until Ctrl-C",
		Long: "worker claims futures of WASM functions from its queues and runs them. Any number of workers may run, also " +
			"on other machines if the store is FoundationDB or served by dev. With --head it needs no access to a store: it " +
			"joins heads over libp2p, those of b7s included, and runs what these heads order, and nobody else. Ctrl-C lets " +
			"running functions finish and gives back the rest, as SIGTERM does, and SIGHUP unless it is ignored; a second " +
			"one ends the worker at once.",
		Example: "  futura worker --store fdb:fdb.cluster --slots 8\n  futura worker --queue urgent --queue default\n" +
			"  futura worker --head /ip4/10.0.0.1/tcp/9527/p2p/12D3KooW... --state /var/lib/futura-worker\n" +
			"  futura worker --head /p2p/12D3KooW... --discover lab",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := errors.Join(f.check(cmd.Flags()), f.peer.check(cmd.Flags()), f.metrics.check(cmd.Flags()))
			if err != nil {
				return err
			}
			return a.worker(cmd.Context(), &f)
		},
	}
	flags := cmd.Flags()
	f.add(flags)
	f.peer.add(flags)
	under(flags, ofHeads)
	f.metrics.add(flags)
	under(flags, ofMetrics)
	return cmd
}

func (a *app) worker(ctx context.Context, f *workerFlags) error {
	a.untilStopped = true
	defer stopAtHangup()()
	f.options.Logger = a.logger(f.verbose)
	f.options.Middleware, f.options.StreamsOutput = a.traces.middleware(), true
	cacheModules(&f.cache, f.options.Logger)
	if f.peer.on() {
		return a.peerWorker(ctx, f)
	}
	a.outlivesServer = true
	o := futures.Options{Cluster: a.cluster, NoHints: f.options.NoHints}
	return a.with(ctx, o, func(c *futures.Client) error {
		w, err := startWorker(ctx, c.Cluster(), f.options, wasm.Config{CacheDir: f.cache, MemoryLimit: f.memory})
		if err != nil {
			return err
		}
		metrics, stopMetrics, err := f.metrics.serve(f.options.Logger, workers.NewCollector(w.Worker))
		if err == nil {
			err = a.awaitWorker(ctx, f, w, metrics)
		}
		return errors.Join(err, w.stop(), stopMetrics())
	})
}

// stopAtHangup has SIGHUP stop the process as SIGTERM does, until the returned function is called: a terminal that
// closes ends a worker as Ctrl-C does. A SIGHUP that is ignored, as under nohup, stays so.
func stopAtHangup() func() {
	if signal.Ignored(syscall.SIGHUP) {
		return func() {}
	}
	hangups, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer close(done)
		if _, one := <-hangups; !one {
			return
		}
		signal.Stop(hangups) // a second one ends the process at once
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Signal(syscall.SIGTERM)
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(hangups)
		<-done
	}
}

// awaitWorker says that a worker is there, and where its metrics are, and waits for its end.
func (a *app) awaitWorker(ctx context.Context, f *workerFlags, w *running, metrics string) error {
	select {
	case <-w.Ready():
	case <-w.done:
		return nil
	case <-ctx.Done():
		return nil
	}
	limit := w.ModuleTimeout()
	fields := map[string]any{"worker": w.ID(), "queues": f.options.Queues, "module_timeout_ms": limit.Milliseconds()}
	text := fmt.Sprintf("worker %s serves %v; stop it with Ctrl-C\n  %s", w.ID(), f.options.Queues, describeTimeout(limit))
	if metrics != "" {
		fields["metrics"] = metrics
		text += "\n  metrics at " + metrics
	}
	if err := a.say(fields, text); err != nil {
		return err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
	}
	return nil
}

// describeTimeout says how long modules may run.
func describeTimeout(limit time.Duration) string {
	if limit == 0 {
		return "modules without a timeout may run for ever: bound them with --module-timeout"
	}
	return fmt.Sprintf("modules without a timeout may run for %v", limit)
}

// cacheModules has compiled modules kept for the user, unless dir is set: code in
// the directory of a store would be run by whoever opens it. Without a directory
// for the user they are compiled anew by each process.
func cacheModules(dir *string, log *slog.Logger) {
	if *dir != "" {
		return
	}
	caches, err := os.UserCacheDir()
	path := filepath.Join(caches, "futura", "modules")
	if err == nil {
		if err = os.MkdirAll(path, 0o700); err == nil {
			err = trust.Directory(path)
		}
	}
	if err != nil {
		log.Warn("compiled modules are not kept: name a directory with --module-cache", "reason", err)
		return
	}
	*dir = path
}
