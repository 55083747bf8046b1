// Package futura opens in one call what a program needs to submit futures and to
// run them: a store by its name, a client, and a worker if there are functions.
//
//	node, err := futura.Open(ctx, "embedded:./data", futura.Function(greet.Bind(hello)))
//	defer node.Close()
//	text, err := greet.Call(ctx, node.Client, "world", futures.Delay(time.Second))
//
// It links every kind of store that the build has. A program that brings its own
// uses package futures, and package workers where it runs functions.
package futura

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

// Node is this process's part in a cluster.
type Node struct {
	// Store is where the cluster is kept. It also takes rows of the program's own.
	Store kv.Database
	// Client submits futures and awaits them.
	Client *futures.Client
	// Worker runs the functions, nil if there are none.
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
	works     bool
	logger    *slog.Logger
}

type function struct {
	name string
	run  workers.Function
}

// Function makes the node run a function, as go:NAME. It takes what Bind of a
// futures.Definition returns.
func Function(name string, run func(context.Context, []byte) ([]byte, error)) Option {
	return func(s *settings) { s.functions, s.works = append(s.functions, function{name, run}), true }
}

// WorkerOptions makes the node run a worker with these options, also without a function.
// Defaults to workers.Options{} if there are functions, and else to no worker.
func WorkerOptions(o workers.Options) Option {
	return func(s *settings) { s.worker, s.works = o, true }
}

// ClusterName names the cluster in the store. Defaults to futures.DefaultCluster.
func ClusterName(name string) Option { return func(s *settings) { s.client.Cluster = name } }

// ClusterConfig is what a cluster is made with, if it is not there.
func ClusterConfig(c futures.Config) Option { return func(s *settings) { s.client.Config = c } }

// Logger is told of failures, of what is retried in the background, and of the
// store's repairs. Defaults to none.
func Logger(l *slog.Logger) Option { return func(s *settings) { s.logger = l } }

// Open opens a store by its name, as package kvopen has them, such as
// embedded:DIR, memory: or fdb:CLUSTERFILE, with a client of its cluster, and runs
// a worker until Close. The cluster is made if it is not there. An embedded store
// that another process has open is reached through that one, if it serves it. It
// returns the errors of kvopen.Open, futures.New and workers.New. The end of ctx
// ends only the opening.
func Open(ctx context.Context, store string, options ...Option) (*Node, error) {
	var s settings
	for _, o := range options {
		o(&s)
	}
	if s.client.Logger = s.logger; s.worker.Logger == nil {
		s.worker.Logger = s.logger
	}
	db, err := kvopen.Open(ctx, store, kvopen.Options{Logger: s.logger})
	if err != nil {
		return nil, err
	}
	client, err := futures.New(ctx, db, s.client)
	if err != nil {
		return nil, errors.Join(err, db.Close())
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
	return n, nil
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
	ctx, stop := context.WithCancel(context.Background())
	n.Worker, n.stop = w, stop
	go func() {
		defer close(n.ended)
		if err := w.Run(ctx); !errors.Is(err, context.Canceled) {
			n.err = err
		}
	}()
	return nil
}

// Ended is closed when the node's worker runs no more: after Close, or because its
// store has failed. Without a worker it is closed from the start.
func (n *Node) Ended() <-chan struct{} { return n.ended }

// closeTime bounds the last word of a client to its store.
const closeTime = 10 * time.Second

// Close lets running functions end, for at most workers.Options.DrainTimeout,
// gives back the rest, and closes client and store. It returns their errors and
// why the worker had ended; a second Close returns the same.
func (n *Node) Close() error { return n.close() }

func (n *Node) closeAll() error {
	n.stop()
	<-n.ended
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return errors.Join(n.err, n.Client.Close(ctx), n.Store.Close())
}
