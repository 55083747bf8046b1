package bank

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/admin"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/workers"
)

const (
	heartbeat = 200 * time.Millisecond
	deadAfter = 3 * heartbeat
	slots     = 16
)

// node is what futura.Open opens, with a clock that can be moved.
type node struct {
	db     kv.Database
	client *futures.Client
	worker *workers.Worker
	stop   context.CancelFunc
	ended  chan error
}

// openNode opens the bank in a store, and runs a worker for its calls.
func openNode(ctx context.Context, store, cluster string, c *movedClock) (*node, error) {
	db, err := kvopen.Open(ctx, store, kvopen.Options{Share: true})
	if err != nil {
		return nil, err
	}
	model, err := fdbmodel.Open(ctx, db, cluster, fdbmodel.Options{
		Clock: c, Config: layout.Config{Heartbeat: heartbeat, DeadAfter: deadAfter},
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if shared, ok := db.(interface{ OnLost(hear func(string)) }); ok {
		shared.OnLost(admin.Reaper(model, slog.New(slog.DiscardHandler)))
	}
	n := &node{db: db, ended: make(chan error, 1)}
	if n.client, err = futures.FromCluster(model, futures.Options{}); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if n.worker, err = workers.New(n.client, workers.Options{Slots: slots}); err == nil {
		err = errors.Join(n.worker.Register(transfer.Bind(payByTurn)), n.worker.Register(surveyor.Bind(surveyAll)),
			n.worker.Register(receive.Bind()), n.worker.Register(pay.Bind()))
	}
	if err != nil {
		return nil, errors.Join(err, n.client.Close(ctx), db.Close())
	}
	var working context.Context
	working, n.stop = context.WithCancel(ctx)
	go func() { n.ended <- n.worker.Run(working) }()
	select {
	case <-n.worker.Ready():
		return n, nil
	case err := <-n.ended:
		n.stop()
		return nil, errors.Join(fmt.Errorf("the worker has ended: %w", err), n.client.Close(ctx), db.Close())
	}
}

// close ends the worker, and closes what openNode has opened.
func (n *node) close(ctx context.Context) error {
	n.stop()
	err := <-n.ended
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, n.client.Close(ctx), n.db.Close())
}

// owns reports whether this process has an embedded store open, and not another one for it.
func owns(db kv.Database) bool {
	shared, ok := db.(interface{ IsOwner() bool })
	return ok && shared.IsOwner()
}
