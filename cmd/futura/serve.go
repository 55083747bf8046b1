package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/kv/sharing"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi/stack"
	"github.com/futura-run/futura/internal/connlimit"
	"github.com/futura-run/futura/workers"
)

// serveFlags are what serve takes.
type serveFlags struct {
	serverFlags
	drain   time.Duration
	verbose bool
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Own a store in production: serve it to other processes and over HTTP, and keep it clean",
		Long: "serve opens the store, serves it to the other processes of its user and over HTTP, drives batches, and does " +
			"what has to be done in time: retries, schedules, timeouts, dead workers, the end of retention. It runs no " +
			"functions: workers are processes of their own, such as futura worker or your programs, and may come and go. " +
			"HTTP requests need a token, as with dev. SIGTERM or Ctrl-C stops it with exit code 0: requests in progress have " +
			"the time of --drain to end, those that wait for a future are answered at once, and then the store is closed, " +
			"within some seconds. Nothing that was acknowledged is lost by kill -9 either.",
		Example: "  futura serve --store embedded:/var/lib/futura/store\n" +
			"  futura serve --store 'embedded:/var/lib/futura/store?memory=2GiB' --listen 127.0.0.1:9000\n" +
			"  futura serve --store embedded:/var/lib/futura/store --store-listen 127.0.0.1:7421\n" +
			"  futura serve --store fdb:/etc/foundationdb/fdb.cluster --tokens /etc/futura/tokens",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), &f) },
	}
	flags := cmd.Flags()
	f.add(flags, "listen", "127.0.0.1:7420", time.Minute)
	flags.DurationVar(&f.drain, "drain", stopTime, "how long requests may go on after SIGTERM, before they are cut off")
	flags.BoolVar(&f.verbose, "verbose", false, "log each request and each step")
	return cmd
}

func (a *app) serve(ctx context.Context, f *serveFlags) error {
	a.untilStopped = true
	n, err := f.node(a, a.logger(f.verbose))
	if err != nil {
		return err
	}
	n.drain = f.drain
	return n.serveStore(ctx, &f.access, nil)
}

// filesMin is how many files and connections a process that serves a store must be allowed to have: the store's files,
// two sockets to listen at, and some connections. With fewer it would wait for one of them without a word.
const filesMin = 32

func enoughFiles() error {
	may := connlimit.Descriptors()
	if may >= filesMin {
		return nil
	}
	return fmt.Errorf("this process may have %d files and connections open, and needs %d at least: allow it more, as by "+
		"ulimit -n 1024", may, filesMin)
}

// serveStore opens the store and serves it until ctx ends: with the worker of w, which is a
// janitor too, or with a janitor alone if w is nil.
func (n *node) serveStore(ctx context.Context, access *accessFlags, w *workerFlags) (err error) {
	name := n.app.store
	if err := enoughFiles(); err != nil {
		return err
	}
	if err := refuseSecond(name); err != nil {
		return err
	}
	if n.db, err = kvopen.Open(ctx, name, kvopen.Options{Logger: n.log, Share: true, InUseWait: inUseWait}); err != nil {
		return err
	}
	o := futures.Options{Cluster: n.app.cluster, Logger: n.log, Tracer: n.app.traces.tracer()}
	run := n.runJanitor
	if w != nil {
		o.Config = configFor(n.db)
		o.NoHints = w.options.NoHints
		run = func(ctx context.Context) error { return n.run(ctx, w) }
	}
	if n.client, err = futures.New(ctx, n.clientStore(), o); err != nil {
		return errors.Join(err, n.db.Close())
	}
	reapLost(n.db, n.client.Cluster(), n.log)
	if err = access.complete(n); err == nil {
		n.tokens.Add("dev", n.token, stack.Admin)
		defer reloadAtHangup(n)()
		n.warnOfOwner()
		err = run(ctx)
	}
	return errors.Join(err, n.close(ctx))
}

// runJanitor runs the node without a worker, and a janitor beside it. It ends with either.
func (n *node) runJanitor(ctx context.Context) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	cleaned := make(chan error, 1)
	go func() {
		defer stop()
		cleaned <- workers.RunJanitor(running, n.client.Cluster(), workers.JanitorOptions{Logger: n.log})
	}()
	err := n.run(running, nil)
	stop()
	return errors.Join(err, <-cleaned)
}

// warnOfOwner says that another process owns the store.
func (n *node) warnOfOwner() {
	dir, _ := embeddedDir(n.app.store)
	store, ok := n.db.(*sharing.Database)
	if !ok || store.IsOwner() {
		return
	}
	owner, _ := sharing.ReadRecord(dir)
	n.log.Warn("another process owns the store: this one serves it through that, and takes over when that ends",
		"process", owner.PID)
}

// refuseSecond returns kv.ErrStoreInUse if another process serves a directory's store over HTTP.
func refuseSecond(store string) error {
	dir, ok := embeddedDir(store)
	if !ok {
		return nil
	}
	e, err := readEndpoint(dir)
	if err != nil || !e.isLive() || !e.answers() {
		return nil
	}
	return fmt.Errorf("%w: process %d serves %s at %s: stop that process, or name another store", kv.ErrStoreInUse, e.PID,
		store, e.URL)
}
