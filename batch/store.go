package batch

import (
	"context"
	"time"
)

// Store keeps batches with their items and chunks. Its methods may be called
// from many goroutines and, unless it is in memory, many processes: every
// change of an item is a compare and set, so that of two heads that work on one
// batch one wins. A store that does not implement Recorder runs assigned items
// itself. Errors are ErrNotFound, those that a method names, ctx's, and the
// store's own. Repeating a call whose outcome is unknown does no harm. Times
// are kept to the millisecond.
//
// A waiting item is Created if none of its attempts has failed, otherwise
// Failed.
type Store interface {
	// Create creates a batch and its items, durable before it returns. Until then
	// the batch is invisible; Sweep removes one whose creation was interrupted.
	// From b it takes the id, the template, the attempts and the time of creation.
	// It returns ErrExists for an id that is in use, even by an interrupted batch,
	// unless that has the same Digest: then Create completes it. It returns ErrBadBatch,
	// and writes nothing, for a template larger than MaxTemplate. Of concurrent
	// calls for the same batch one succeeds; another returns ErrExists if the batch
	// is there, and ErrBusy if it is not yet.
	Create(ctx context.Context, b *Batch, arguments [][]string) error

	// Get returns a batch.
	Get(ctx context.Context, id string) (Batch, error)

	// List returns up to limit batches in the order of their CreatedAt, and of
	// their id where that is the same, behind the one named after, or from the
	// first. active leaves out those that are over. It returns ErrNotFound if the
	// batch named after no longer exists.
	List(ctx context.Context, active bool, after string, limit int) ([]Batch, error)

	// Progress counts the items of a batch by state, in a time that does not
	// depend on its size if the store can.
	Progress(ctx context.Context, id string) (Progress, error)

	// Items returns up to limit items whose index is at least from and whose
	// state is one of states (all if there are none), in the order of their
	// index. A result is left out once those before it and itself have more than
	// PageBytes: the item says how large it is, and Result returns it.
	Items(ctx context.Context, id string, from, limit int, states ...Status) ([]Item, error)

	// Outline is Items with at most most bytes of each stream of a result, see
	// Result.Begin; LeftOut says how many more there are. Of a stream that the store
	// can't read in part it may have none. Without any bytes (0) there are no results.
	Outline(ctx context.Context, id string, from, limit, most int, states ...Status) ([]Item, error)

	// Result returns the result of one item, whatever its size, and nil if it has
	// none. It returns ErrNotFound for an index that the batch does not have.
	Result(ctx context.Context, id string, index int) (*Result, error)

	// Waiting returns up to limit items that can be given to a worker now:
	// created ones, and failed ones that are due, in no particular order and
	// maybe without their results. next is when more become due, zero if none
	// wait for that.
	Waiting(ctx context.Context, id string, now time.Time, limit int) (items []Item, next time.Time, err error)

	// Chunks returns the chunks of a batch, in no particular order.
	Chunks(ctx context.Context, id string) ([]Chunk, error)

	// Assign makes c a chunk of those of the items that wait (created, or
	// failed), which become in progress, and the batch in progress. Called again
	// with the same chunk it adds to it. It returns the indexes of those of the
	// items that are in progress under c then, so that a call whose outcome is
	// unknown can be repeated, in ascending order. Without any there is no chunk.
	// Items of a batch that is over are not given out, nor indexes that it does
	// not have.
	Assign(ctx context.Context, c *Chunk, items []int) ([]int, error)

	// Release gives back the items of a chunk that are in progress: they wait
	// again, due at once and without counting an attempt, or have failed for good
	// if the batch was cancelled. The chunk is then Failed unless it was Done. It
	// returns how many items there were.
	Release(ctx context.Context, batch, chunk string) (int, error)

	// Settle makes chunks Done that have no item in progress, or Failed if their
	// worker was lost with some, and the batch Done if all of its items are over. It
	// returns the batch as it is then.
	Settle(ctx context.Context, id string, now time.Time) (Batch, error)

	// SetReason records why an open batch waits, or that it no longer does. It
	// returns ErrState for one that is over.
	SetReason(ctx context.Context, id, reason string) error

	// Cancel ends a batch: waiting items fail for good, with the reason; items in
	// progress do so when they end, unless they are done. The batch is
	// PermanentlyFailed at once. It returns ErrState for one that is over.
	Cancel(ctx context.Context, id, reason string, now time.Time) error

	// Retry makes items that have failed for good wait again, with all their
	// attempts, and the batch in progress. It returns how many there were;
	// without any it changes nothing.
	Retry(ctx context.Context, id string) (int, error)

	// Delete removes a batch that is over. It returns ErrState for others.
	Delete(ctx context.Context, id string) error

	// Sweep removes the remains of Create calls that were interrupted longer than
	// age ago.
	Sweep(ctx context.Context, now time.Time, age time.Duration) error

	// Watch returns a channel that receives a value, at most one at a time, when
	// the batch may have changed, also in another process. ok is false for a store
	// that can't report changes. stop ends the watch.
	Watch(ctx context.Context, id string) (changed <-chan struct{}, stop func(), ok bool, err error)

	// Describe names the store and where it is, without secrets, and says
	// whether it survives a restart.
	Describe() (name string, durable bool)

	// Close releases the store.
	Close(ctx context.Context) error
}

// Mover is a store that can give what a worker has not begun to another one.
type Mover interface {
	Store

	// SettleOpen is Settle, and also returns which workers have items in progress, in the
	// order of their ids. It reads no more than Settle does.
	SettleOpen(ctx context.Context, id string, now time.Time) (Batch, []Load, error)

	// Move gives items of the batch of a chunk that the worker from has not begun to that of
	// the chunk: half of them, rounded up, those that it would begin last, and most at most.
	// to becomes a chunk of the batch, or has more items, if there are any. Each item goes in
	// one transaction, so that no other can take it in between; those stay that the other
	// worker can't run, or has failed. It returns how many have gone, which may be some even
	// if it returns an error: ErrNotFound, if the worker is not registered, and ErrState for a
	// batch that is over.
	Move(ctx context.Context, from string, to *Chunk, most int) (int, error)
}

// Load is how many items of a batch are in progress with a worker.
type Load struct {
	Worker string
	Items  int
}

// Recorder is a store whose items are run elsewhere: a head sends chunks to
// workers and records what comes back.
type Recorder interface {
	Store

	// Complete records how attempts of a chunk's items ended. It returns for each
	// whether it counted: an item that is not in progress under this chunk is
	// left as it is. An attempt with exit code 0 that has not Failed makes the
	// item Done; another
	// counts as a failed one, and makes it Failed, or PermanentlyFailed after
	// Batch.MaxAttempts of them or if the batch was cancelled.
	Complete(ctx context.Context, batch, chunk string, ended []Completion) ([]bool, error)
}

// Completion is how one attempt of one item ended.
type Completion struct {
	Index  int
	Result Result
	// Failed is set if the attempt did not succeed; Reason says why.
	Failed bool
	Reason string
	// Permanent is set if no further attempt could help.
	Permanent bool
	// DueAt is when the item may be tried again.
	DueAt time.Time
	// At is when the attempt ended.
	At time.Time
}
