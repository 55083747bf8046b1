// Package roles ends the roles that a worker has in its cluster.
package roles

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Transact runs a function in a transaction, as that of a Cluster.
type Transact func(context.Context, kv.Options, func(kv.Attempt) error) (kv.Result, error)

// ReleaseJanitor gives up the role of the janitor, if a worker has it. An unknown commit is
// harmless.
func ReleaseJanitor(ctx context.Context, transact Transact, keys layout.Keyspace, worker layout.WorkerID) error {
	_, err := transact(ctx, kv.Options{Tag: "futura-janitor", NoSync: true}, func(tx kv.Attempt) error {
		value, err := tx.Get(keys.Janitor()).Wait(ctx)
		if err != nil || value == nil {
			return err
		}
		var present layout.JanitorRecord
		if err := layout.Decode(keys.Janitor(), value, &present); err != nil {
			return err
		}
		if present.Worker == worker {
			tx.Clear(keys.Janitor())
		}
		return nil
	})
	return err
}
