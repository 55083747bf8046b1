package main

import (
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/sharing"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerhead"
	"github.com/futura-run/futura/workers"
	"github.com/futura-run/futura/workers/wasm"
)

// What dev and the commands that serve nothing make a cluster of an embedded store with, so that a dead worker shows
// soon. serve is for production, where a busy machine keeps workers waiting: it leaves them to the defaults.
const (
	devHeartbeat = 500 * time.Millisecond
	devDeadAfter = 2 * time.Second
)

// configFor are the settings of a cluster that a command makes in a store.
func configFor(db kv.Database) layout.Config {
	if _, isShared := db.(*sharing.Database); isShared || kv.TraitsOf(db).Exclusive {
		return layout.Config{Heartbeat: devHeartbeat, DeadAfter: devDeadAfter}
	}
	return layout.Config{}
}

// devFlags are what dev takes.
type devFlags struct {
	serverFlags
	worker workerFlags
}

func (a *app) devCommand() *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole cluster here: store, HTTP, a worker and a head",
		Long: "dev opens the store, serves it over HTTP, and runs a worker for WASM functions and a head for batches, " +
			"until Ctrl-C. Other futura commands that name the same store reach it through this process, and so do " +
			"further workers and heads. HTTP requests need a token: the one in DIR/token, which only you can read and " +
			"which survives restarts, the one in --token-file, or one made by futura token create.",
		Example: "  futura dev\n  futura dev --listen 127.0.0.1:9000 --slots 16\n" +
			"  futura dev --store fdb:fdb.cluster --tokens tokens",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.worker.check(cmd.Flags()); err != nil {
				return err
			}
			return a.dev(cmd.Context(), &f)
		},
	}
	flags := cmd.Flags()
	f.worker.add(flags)
	f.add(flags, "listen", "127.0.0.1:7420", devDeadAfter)
	return cmd
}

func (a *app) dev(ctx context.Context, f *devFlags) error {
	a.untilStopped = true
	log := a.logger(f.worker.verbose)
	f.worker.options.Logger = log
	n, err := f.node(a, log)
	if err != nil {
		return err
	}
	return n.serveStore(ctx, &f.access, &f.worker)
}

// startWorker runs the worker of dev, none for a nil f.
func (n *node) startWorker(ctx context.Context, f *workerFlags) (*running, error) {
	if f == nil {
		return nil, nil
	}
	cacheModules(&f.cache, n.log)
	f.options.Name = cmp.Or(f.options.Name, "dev")
	f.options.Middleware, f.options.StreamsOutput = n.app.traces.middleware(), true
	f.options.AwaitsRoom = true
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
	if n.peers != nil {
		all = append(all, p2p.NewCollector(n.peers.host), peerhead.NewCollector(n.peers.Head))
	}
	return all
}
