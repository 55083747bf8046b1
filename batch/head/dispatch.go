package head

import (
	"cmp"
	"context"
	"errors"

	"github.com/futura-run/futura/batch"
)

// ErrWorkerLost is returned by Dispatcher.Run when the worker of a chunk was
// lost: items that have not been delivered will not be.
var ErrWorkerLost = errors.New("the worker was lost")

// Dispatcher reaches workers. Its methods may be called from many goroutines.
type Dispatcher interface {
	// Check returns batch.ErrBadBatch if no worker can ever run a template: its
	// function is not installed.
	Check(ctx context.Context, t *batch.Template) error

	// RollCall returns the workers that answer and can run a template, the first
	// to answer or the least busy first.
	RollCall(ctx context.Context, t *batch.Template) ([]Candidate, error)

	// Run has a worker run the items of a chunk, and delivers how their attempts
	// ended, whole or in parts, each item once. It returns when all have been
	// delivered and deliver has returned nil for them, ErrWorkerLost, or ctx's
	// error. Called again for the same chunk, by this head or another, it delivers
	// what the first call would have delivered: nothing runs again. A head with a
	// store that runs its items itself does not call it.
	Run(ctx context.Context, o Order, deliver func(context.Context, []batch.Completion) error) error

	// Cancel asks the worker of a chunk that runs to stop. Run delivers how the
	// items have ended then.
	Cancel(ctx context.Context, o Order, reason string) error
}

// Candidate is a worker that can run a template.
type Candidate struct {
	// Worker is the worker's id, and Peer the one by which others know it, empty if
	// that is Worker.
	Worker, Peer string
	// Free is how many items it could begin at once, as far as it is known, and Slots how many if it had
	// none. Without Slots the head keeps the order of the roll call.
	Free, Slots int
	// Beat changes with each report of the worker. The head counts what it has given it since.
	Beat int64
}

// PeerID is what b7s calls the worker: Peer, or else its own id.
func (c Candidate) PeerID() string { return cmp.Or(c.Peer, c.Worker) }

// Order is a chunk for its worker.
type Order struct {
	Batch    batch.Batch
	Chunk    batch.Chunk
	Items    []batch.Item
	Template *batch.Template
	// Trace is the context of the trace that the items are part of, nil for none.
	Trace map[string]string
}
