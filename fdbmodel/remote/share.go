package remote

import (
	"context"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// Share returns db as the serving process itself should use it while others
// reach it through Serve: it is not kv.Local any more, so that work that others
// submit wakes the process's own workers, and others' workers are not taken for
// those of an earlier opening. Closing it closes db. Serve takes either.
func Share(db kv.Database) kv.Database {
	shared := shared{Database: db, opening: opening(db)}
	if waiter, ok := db.(kv.ConflictWaiter); ok {
		return sharedWaiter{shared: shared, waiter: waiter}
	}
	return shared
}

// shared implements kv.Shared.
type shared struct {
	kv.Database
	opening string
}

// SharedOpening implements kv.Shared.
func (s shared) SharedOpening() string { return s.opening }

// sharedWaiter implements kv.ConflictWaiter as well.
type sharedWaiter struct {
	shared
	waiter kv.ConflictWaiter
}

// WaitConflict implements kv.ConflictWaiter.
func (s sharedWaiter) WaitConflict(ctx context.Context, tx kv.Tx) error {
	return s.waiter.WaitConflict(ctx, tx)
}
