// Package edge connects futures with those that they take results of. It links new futures
// to their inputs, notifies dependants of inputs that end, and resolves what a transaction
// has left of that after its commit.
package edge

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/index"
	"github.com/futura-run/futura/fdbmodel/internal/shards"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Model is what dependencies need of the model.
type Model interface {
	View(context.Context, func(kv.Attempt) error) error
	Transact(context.Context, kv.Options, func(kv.Attempt) error) (kv.Result, error)
	// Now returns the time.
	Now() time.Time
	// Write returns the changes of one attempt of a transaction.
	Write(tx kv.Attempt) Changes
	// Lose reports that no worker has a copy of a result. It returns false while the worker
	// that keeps one may come back.
	Lose(ctx context.Context, id layout.ID, token layout.Token) (reported bool, err error)
}

// Changes are what one transaction changes of futures.
type Changes interface {
	// Apply writes the difference between two rows.
	Apply(before, after *layout.Row)
	// Place puts a future where it waits.
	Place(row *layout.Row)
	// Edges returns the index of edges.
	Edges() *index.Edges
	// Flush ends the changes, before the commit.
	Flush(ctx context.Context) error
	// Committed wakes workers and clients, after a commit at version.
	Committed(ctx context.Context, version kv.Version)
}

// Resolver resolves the dependencies that transactions have marked. Its methods are safe
// for concurrent use.
type Resolver struct {
	Keys  layout.Keyspace
	Model Model

	marked marked
	at     shards.Cursor // of Resolve
}
