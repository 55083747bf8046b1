package peerworker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/workers"
)

// What the local cluster is made with, which has the worker and its modules, and no futures.
const (
	localCluster   = "peer"
	localShards    = 1
	localHeartbeat = time.Second
	localDeadAfter = 15 * time.Second
)

// node is the worker's own cluster, with a worker of package workers.
type node struct {
	db      kv.Database
	cluster *fdbmodel.Cluster
	worker  *workers.Worker
	stop    context.CancelFunc
	// done is closed when the worker has ended, with err.
	done chan struct{}
	err  error
}

// openNode opens the store.
func openNode(ctx context.Context, o *Options) (*node, error) {
	db, err := openStore(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("peerworker: the worker's own store: %w", err)
	}
	config := layout.Config{Shards: localShards, Heartbeat: localHeartbeat, DeadAfter: localDeadAfter}
	cluster, err := fdbmodel.Open(ctx, db, localCluster, fdbmodel.Options{Config: config})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &node{db: db, cluster: cluster, done: make(chan struct{})}, nil
}

func openStore(ctx context.Context, o *Options) (kv.Database, error) {
	if o.Seam != nil {
		return o.Seam.Open(ctx)
	}
	name := "memory:"
	if o.State != "" {
		name = "embedded:" + o.State
	}
	return kvopen.Open(ctx, name, kvopen.Options{Logger: o.Logger, Exclusive: true})
}

// start runs the worker, and returns once it is a member.
func (n *node) start(ctx context.Context, o workers.Options, functions map[string]workers.Function) error {
	w, err := workers.FromCluster(n.cluster, o)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	for name, fn := range functions {
		if err := w.Register(name, fn); err != nil {
			return err
		}
	}
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.worker, n.stop = w, stop
	go func() {
		defer close(n.done)
		n.err = w.Run(working)
	}()
	select {
	case <-w.Ready():
		return nil
	case <-n.done:
		return n.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drain lets the worker end, and waits for it.
func (n *node) drain() error {
	if n.stop == nil {
		return nil
	}
	n.stop()
	<-n.done
	return n.err
}

// info is what the worker registered with.
func (n *node) info(ctx context.Context) (layout.WorkerInfo, error) {
	return n.cluster.Registered(ctx, n.worker.ID())
}

// transact runs fn in a transaction of the store, which is repeated after an unknown commit.
func (n *node) transact(ctx context.Context, fn func(kv.Attempt) error) error {
	_, err := n.cluster.Transact(ctx, kv.Options{Tag: "futura-peer"}, fn)
	return err
}
