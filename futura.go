// Package futura opens everything that a program needs to submit and run
// futures in one call: a store by its name, a client, and a worker if the
// program has functions.
//
//	node, err := futura.Open(ctx, "embedded:./data", futura.Function(greet.Bind(hello)))
//	defer node.Close()
//	text, err := greet.Call(ctx, node.Client, "world", futures.Delay(time.Second))
//
// It links every kind of store that the build supports. A program that brings
// its own store uses package futures, and package workers to run functions.
package futura

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// Node is this process's part of a cluster.
type Node struct {
	// Store holds the cluster. The program may keep rows of its own in it.
	Store kv.Database
	// Client submits futures and awaits them.
	Client *futures.Client
	// Worker runs the functions. It is nil if there are none.
	Worker *workers.Worker

	stop  context.CancelFunc
	ended chan struct{}
	err   error // of the worker, once ended is closed
	close func() error
}

// Option changes what Open opens.
type Option func(*settings)

type settings struct {
	client    futures.Options
	worker    workers.Options
	functions []function
	bundles   []bundle
	works     bool
	logger    *slog.Logger
}

type function struct {
	name string
	run  workers.Function
}

// Function makes the node run a function as go:NAME. Its arguments are the
// results of futures.Definition.Bind.
func Function(name string, run func(context.Context, []byte) ([]byte, error)) Option {
	return func(s *settings) { s.functions, s.works = append(s.functions, function{name, run}), true }
}

type bundle struct {
	name string
	run  workers.BundleFunction
}

// Bundle makes the node run a function that takes many futures of a lane in one call, as
// go:NAME. Its arguments are the results of grouping.Handler.Bind. The kind of lanes that
// names it is set by grouping.Handler.Setup or Client.SetLaneKind.
func Bundle(name string, run workers.BundleFunction) Option {
	return func(s *settings) { s.bundles, s.works = append(s.bundles, bundle{name, run}), true }
}

// WorkerOptions makes the node run a worker with these options, even without a
// function. Their NoHints holds for the client as well. Defaults to
// workers.Options{} if there are functions, otherwise to no worker.
func WorkerOptions(o workers.Options) Option {
	return func(s *settings) { s.worker, s.works = o, true }
}

// ClusterName names the cluster in the store. Defaults to futures.DefaultCluster.
func ClusterName(name string) Option { return func(s *settings) { s.client.Cluster = name } }

// ClusterConfig is the configuration of a cluster that Open creates. It has no
// effect on an existing cluster.
func ClusterConfig(c futures.Config) Option { return func(s *settings) { s.client.Config = c } }

// Tracer is told of the submits and awaits of the node's client, such as one of package
// futures/tracing. Defaults to none.
func Tracer(t futures.Tracer) Option { return func(s *settings) { s.client.Tracer = t } }

// Logger receives failures, background retries, and repairs of the store.
// Defaults to none.
func Logger(l *slog.Logger) Option { return func(s *settings) { s.logger = l } }

// Open opens a store by a name that package kvopen understands, such as
// embedded:DIR, memory: or fdb:CLUSTERFILE, with a client of its cluster, and
// runs a worker until Close. A cluster that does not exist is created. The programs of one user
// share an embedded store: one has it open, the others reach it through that one, and when it
// ends or is killed, another takes over within about a second, while calls wait; embedded:DIR?share=off
// keeps the store to this process. Open returns once the worker is a member of the cluster,
// with the errors of kvopen.Open, futures.New, workers.New and Worker.Run. ctx bounds
// only the opening.
func Open(ctx context.Context, store string, options ...Option) (*Node, error) {
	var s settings
	for _, o := range options {
		o(&s)
	}
	s.client.NoHints, s.logger = s.worker.NoHints, cmp.Or(s.logger, slog.New(slog.DiscardHandler))
	if s.client.Logger = s.logger; s.worker.Logger == nil {
		s.worker.Logger = s.logger
	}
	db, err := kvopen.Open(ctx, store, kvopen.Options{Share: true, Logger: s.logger})
	if err != nil {
		return nil, err
	}
	client, err := futures.New(ctx, db, s.client)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if shared, ok := db.(interface {
		OnLost(hear func(connection string))
	}); ok {
		shared.OnLost(admin.Reaper(client.Cluster(), s.logger))
	}
	n := &Node{Store: db, Client: client, stop: func() {}, ended: make(chan struct{})}
	n.close = sync.OnceValue(n.closeAll)
	if !s.works {
		close(n.ended)
		return n, nil
	}
	if err := n.work(&s); err != nil {
		close(n.ended)
		return nil, errors.Join(err, n.Close())
	}
	select {
	case <-n.Worker.Ready():
		return n, nil
	case <-n.ended:
		return nil, n.Close()
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), n.Close())
	}
}

// work runs a worker.
func (n *Node) work(s *settings) error {
	w, err := workers.New(n.Client, s.worker)
	if err != nil {
		return err
	}
	for _, f := range s.functions {
		if err := w.Register(f.name, f.run); err != nil {
			return err
		}
	}
	for _, b := range s.bundles {
		if err := w.RegisterBundle(b.name, b.run); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	n.Worker, n.stop = w, stop
	go func() {
		defer close(n.ended)
		if n.err = w.Run(ctx); n.err != nil && ctx.Err() == nil {
			s.logger.Error("the worker of this process has ended; close the node, and open it again or end the process",
				"error", n.err)
		}
	}()
	return nil
}

// Ended returns a channel that is closed when the node's worker has stopped: after Close, or because its store has
// failed, as on a full disk if this process owns an embedded one. The worker does not come back, and calls of Client
// fail, even if another process has taken the store over: Close returns why, and then Open can be tried again. Without
// a worker the channel is closed from the start.
func (n *Node) Ended() <-chan struct{} { return n.ended }

// closeTime bounds a client's last transaction.
const closeTime = 10 * time.Second

// Close waits at most workers.Options.DrainTimeout for running functions to
// end, gives back the rest, and closes client and store. It returns their
// errors and the reason why the worker had ended; a second Close returns the
// same.
func (n *Node) Close() error { return n.close() }

func (n *Node) closeAll() error {
	n.stop()
	<-n.ended
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return errors.Join(n.err, n.Client.Close(ctx), n.Store.Close())
}
