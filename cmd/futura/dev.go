package main

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
	"github.com/futura-run/futura/workers/wasm"
)

// What a cluster that dev makes has, so that a dead worker shows soon.
const (
	devHeartbeat = 500 * time.Millisecond
	devDeadAfter = 2 * time.Second
)

// devFlags are what dev takes.
type devFlags struct {
	worker  workerFlags
	listen  string
	store   string
	access  accessFlags
	tls     certificateFlags
	batches batchStoreFlags
}

func (a *app) devCommand() *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole cluster in this process: store, HTTP, a worker and a head",
		Long: "dev opens the store, serves it over HTTP, and runs a worker for WASM functions and a head for batches,\n" +
			"until Ctrl-C. Other futura commands that name the same store reach it through this process, and so do\n" +
			"further workers and heads. HTTP requests bear the token of DIR/token, which only you can read and which\n" +
			"stays the same over restarts, that of --token-file, or one that futura token create has made.",
		Example: "  futura dev\n  futura dev --listen 127.0.0.1:9000 --slots 16\n" +
			"  futura dev --store fdb:fdb.cluster --tokens tokens",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.dev(cmd.Context(), &f) },
	}
	flags := cmd.Flags()
	f.worker.add(flags)
	flags.StringVar(&f.listen, "listen", "127.0.0.1:7420", "where HTTP is served; port 0 takes a free one")
	flags.StringVar(&f.store, "store-listen", "",
		"also serve an embedded store to other processes at this address, by token and TLS (default: not)")
	f.access.add(flags)
	f.tls.add(flags)
	f.batches.add(flags, devDeadAfter, devDeadAfter)
	return cmd
}

// certificateFlags name the certificate of HTTPS.
type certificateFlags struct{ cert, key string }

func (f *certificateFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.cert, "tls-cert", "", "a file with the certificate of HTTPS, and of what signed it")
	flags.StringVar(&f.key, "tls-key", "", "a file with the certificate's key")
}

func (a *app) dev(ctx context.Context, f *devFlags) error {
	log := a.logger(f.worker.verbose)
	f.worker.options.Logger = log
	tokens, token, err := f.access.read(log)
	if err != nil {
		return err
	}
	certificate, err := f.tls.load()
	if err == nil {
		err = f.access.check(f.listen, "--listen", certificate != nil)
	}
	if err != nil {
		return err
	}
	db, err := kvopen.Open(ctx, a.store, kvopen.Options{Logger: log, Exclusive: true})
	if err != nil {
		return err
	}
	o := futures.Options{Cluster: a.cluster, Logger: log}
	if kv.TraitsOf(db).Exclusive {
		o.Config = layout.Config{Heartbeat: devHeartbeat, DeadAfter: devDeadAfter}
	}
	client, err := futures.New(ctx, remote.Share(db), o)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	n := &node{
		app: a, db: db, client: client, log: log, token: token, tls: certificate, listen: f.listen, doorListen: f.store,
		batches: &f.batches, listenFlag: "--listen", accessLog: f.access.log, tokens: tokens,
		tokenFile: f.access.tokenFile,
	}
	if err = f.access.complete(n); err == nil {
		n.tokens.Add("dev", n.token)
		defer reloadAtHangup(n)()
		err = n.run(ctx, &f.worker)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, client.Close(closing), db.Close())
}

// load returns the certificate, nil for none.
func (f *certificateFlags) load() (*tls.Config, error) {
	if f.cert == "" && f.key == "" {
		return nil, nil
	}
	if f.cert == "" || f.key == "" {
		return nil, usageError{errors.New("--tls-cert and --tls-key belong together")}
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, usageError{err}
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// startWorker runs the worker of dev, none for a nil f.
func (n *node) startWorker(ctx context.Context, f *workerFlags) (*running, error) {
	if f == nil {
		return nil, nil
	}
	if err := n.app.cacheModules(&f.cache); err != nil {
		return nil, err
	}
	if f.options.Name == "" {
		f.options.Name = "dev"
	}
	return startWorker(ctx, n.client.Cluster(), f.options, wasm.Config{CacheDir: f.cache, MemoryLimit: f.memory})
}

// collectors are the metrics beside the cluster's.
func (n *node) collectors(w *running) []prometheus.Collector {
	var all []prometheus.Collector
	if w != nil {
		all = append(all, workers.NewCollector(w.Worker))
	}
	if s, ok := n.db.(storeStats); ok {
		all = append(all, newStoreCollector(s))
	}
	return all
}
