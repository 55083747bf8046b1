// Package roles ends the roles that a worker has in its cluster.
package roles

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Transact runs a function in a transaction, as that of a Cluster.
type Transact func(context.Context, kv.Options, func(kv.Attempt) error) (kv.Result, error)

// Of matches the role of a worker.
func Of(worker layout.WorkerID) func(*layout.JanitorRecord) bool {
	return func(of *layout.JanitorRecord) bool { return of.Worker == worker }
}

// ReleaseJanitor gives up the role of the janitor that matches. An unknown commit is harmless.
func ReleaseJanitor(ctx context.Context, transact Transact, keys layout.Keyspace,
	matches func(*layout.JanitorRecord) bool,
) error {
	_, err := transact(ctx, kv.Options{Tag: "futura-janitor", NoSync: true}, func(tx kv.Attempt) error {
		return release(ctx, tx, keys, matches)
	})
	return err
}

// ReleaseDead is ReleaseJanitor for a worker that was declared dead. It does nothing for one that is alive.
func ReleaseDead(ctx context.Context, transact Transact, keys layout.Keyspace, worker layout.WorkerID) error {
	_, err := transact(ctx, kv.Options{Tag: "futura-janitor", NoSync: true}, func(tx kv.Attempt) error {
		alive, err := tx.Get(keys.Worker(worker, layout.WorkerAlive)).Wait(ctx)
		if err != nil || alive != nil {
			return err
		}
		return release(ctx, tx, keys, Of(worker))
	})
	return err
}

func release(ctx context.Context, tx kv.Tx, keys layout.Keyspace, matches func(*layout.JanitorRecord) bool) error {
	value, err := tx.Get(keys.Janitor()).Wait(ctx)
	if err != nil || value == nil {
		return err
	}
	var present layout.JanitorRecord
	if err := layout.Decode(keys.Janitor(), value, &present); err != nil {
		return err
	}
	if matches(&present) {
		tx.Clear(keys.Janitor())
	}
	return nil
}
