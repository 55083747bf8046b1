package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/batch/memstore"
	"github.com/futura-run/futura/batch/mongostore"
	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/futures"
)

// Kinds of stores of batches.
const (
	storeFutures = "futures"
	storeMongo   = "mongo"
	storeMemory  = "memory"
)

// batchStoreFlags say where batches are and how a head drives them.
type batchStoreFlags struct {
	kind           string
	server, name   string
	requeue        time.Duration
	boot           time.Duration
	workers        time.Duration
	attempts       uint64
	privateSources bool
	answer         string
}

func (f *batchStoreFlags) add(flags *pflag.FlagSet, patience time.Duration) {
	flags.StringVar(&f.kind, "batch-store", "",
		"where batches are kept: futures, mongo or memory (default: mongo with --batch-db-server, else futures)")
	flags.StringVar(&f.server, "batch-db-server", "", "a MongoDB server for batches, such as mongodb://127.0.0.1:27017/")
	flags.StringVar(&f.name, "batch-db-name", mongostore.DefaultDatabase, "with --batch-db-server: the database there")
	flags.DurationVar(&f.requeue, "batch-requeue-interval", time.Hour,
		"how often to look for batches that are not over, also those of other heads")
	flags.DurationVar(&f.boot, "batch-resume-delay", patience,
		"how long after its start the head has batches that it finds wait for the workers they ask for")
	flags.DurationVar(&f.workers, "batch-worker-wait", patience,
		"how long a batch waits for the workers it asks for, before it starts with fewer")
	flags.Uint64Var(&f.attempts, "batch-max-attempts", batch.DefaultMaxAttempts, "how often an item is tried at most")
	flags.StringVar(&f.answer, "batch-answer", string(rest.AnswerID),
		"how requests for batches are answered: id at once, or chunks or strands once it is over")
	flags.BoolVar(&f.privateSources, "install-private", false,
		"install functions from private and loopback addresses too")
}

// open opens the store of batches.
func (f *batchStoreFlags) open(ctx context.Context, cluster *fdbmodel.Cluster, log *slog.Logger) (batch.Store, error) {
	if _, err := rest.ParseAnswer(f.answer); err != nil {
		return nil, usageError{fmt.Errorf("--batch-answer: %w", err)}
	}
	kind := f.kind
	switch {
	case kind == "" && f.server != "":
		kind = storeMongo
	case kind == "":
		kind = storeFutures
	}
	if f.server != "" && kind != storeMongo {
		return nil, usageError{fmt.Errorf("--batch-db-server is for --batch-store mongo, not %.20q", kind)}
	}
	if f.name != mongostore.DefaultDatabase && kind != storeMongo {
		return nil, usageError{errors.New("--batch-db-name needs --batch-db-server: it names a database of MongoDB")}
	}
	switch kind {
	case storeFutures:
		return futurestore.New(cluster, futurestore.Options{}), nil
	case storeMemory:
		return memstore.New(), nil
	case storeMongo:
		if f.server == "" {
			return nil, usageError{errors.New("--batch-store mongo: name the server with --batch-db-server")}
		}
		store, err := mongostore.Open(ctx, mongostore.Options{URI: f.server, Database: f.name, Logger: log})
		if errors.Is(err, mongostore.ErrBadURI) {
			return nil, usageError{fmt.Errorf("--batch-db-server: %w", err)}
		}
		if err != nil {
			return nil, err
		}
		return store, nil
	default:
		return nil, usageError{fmt.Errorf("--batch-store %.20q: use futures, mongo or memory", kind)}
	}
}

// runningHead is a head that drives batches, with its store.
type runningHead struct {
	*head.Head
	store  batch.Store
	cancel context.CancelFunc
	// done is closed when the head has ended, with err.
	done chan struct{}
	err  error
}

// startHead runs a head for the batches of a store. Roll calls for labels are told to called.
func (f *batchStoreFlags) startHead(ctx context.Context, client *futures.Client, log *slog.Logger,
	called func(function string, labels map[string]string),
) (*runningHead, error) {
	store, err := f.open(ctx, client.Cluster(), log)
	if err != nil {
		return nil, err
	}
	dispatcher := head.NewCluster(client.Cluster())
	dispatcher.OnRollCall(called)
	driving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &runningHead{store: store, cancel: cancel, done: make(chan struct{}), Head: head.New(head.Options{
		Store: store, Dispatcher: dispatcher, MaxAttempts: f.attempts, BootDelay: f.boot,
		RequeueInterval: f.requeue, WorkerWait: f.workers, Logger: log,
	})}
	go func() {
		r.err = r.Run(driving)
		close(r.done)
	}()
	return r, nil
}

// stop ends the head and closes its store. Items that workers have stay there.
func (r *runningHead) stop() error {
	r.cancel()
	<-r.done
	closing, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	return errors.Join(r.err, r.store.Close(closing))
}

// describe names the store of batches, and reports whether it survives a restart.
func (n *node) describeBatches() (name string, durable bool) {
	name, durable = n.head.store.Describe()
	if strings.HasPrefix(n.app.store, "memory:") && strings.HasPrefix(name, storeFutures) {
		durable = false
	}
	return name, durable
}
