// Package seam is how simulations, and the tests of this module, run clients and
// workers step by step and let them crash. Applications can't import it: what it
// offers is no part of the public API.
package seam

import (
	"context"
	"io"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// Client makes a client run without goroutines, in Step. Options of package
// futures take it.
type Client struct {
	// Drive is called by each await, again and again until it has ended. It should
	// do a round of everything that may end it, Step included; its error ends the
	// await. Nil where others call Step.
	Drive func(context.Context) error
	// Step is set when the client is made. It runs one round: it updates the
	// session's heartbeat, subscribes to wanted futures, delivers mail, and
	// removes that from the store. It returns when the next round is due at the
	// latest; a round in between is harmless. An error is the store's or ctx's;
	// the caller may step again.
	Step func(ctx context.Context, now time.Time) (next time.Time, err error)
}

// Head makes a head run without goroutines, in Step. Options of package head take
// it; their store must run its items itself.
type Head struct {
	// Now is the head's clock, and Random the source of its ids.
	Now    func() time.Time
	Random io.Reader
	// Step is set when the head is made. It resumes batches if that is due, and
	// does what there is to do for each batch that the head drives. It returns when
	// the next step is due at the latest. An error is one of the store's or ctx's,
	// of one batch; the caller may step again.
	Step func(ctx context.Context, now time.Time) (next time.Time, err error)
}

// Worker gives access to a worker's inside. Options of package workers take it,
// and the worker sets what can be called when it is made.
type Worker struct {
	// Manual makes the worker run without goroutines, in Step, and leaves stacks out of the
	// messages of panics: a run repeats wherever its source lies.
	Manual bool
	// AllLabels gives the worker every label.
	AllLabels bool

	// Step runs a manual worker in the caller: what is due of its heartbeat and
	// its janitor, the end of what an earlier step ran, the functions that an
	// earlier step claimed, and one claim. So between two steps it holds what a
	// process that dies would hold. It returns when the next step is due at the
	// latest. A worker that was declared dead becomes a member again. An error is
	// the store's or ctx's; the caller may step again. A timeout passes when the
	// cluster's clock is moved, also while a function runs.
	Step func(ctx context.Context, now time.Time) (next time.Time, err error)
	// TakeCancels ends the contexts of running functions whose futures were
	// cancelled. A function that runs in Step calls it; Step does it too.
	TakeCancels func()
	// Linger is how a bundle of a manual worker waits for more members, until a time or
	// the end of the context, whose cause it returns. Others set it; without it, none waits.
	Linger func(ctx context.Context, until time.Time) error
	// Leave ends the membership of a manual worker: it takes no more objects, what runs
	// and what has not run is given back, what has ended is written, and objects that
	// only this worker has are handed over. Steps meanwhile only beat; the next one
	// makes the worker a member again. It returns the store's or ctx's error.
	Leave func(ctx context.Context) error
	// Vanish ends the worker as a crash of its process would, without telling the
	// store. Its futures stay claimed until others notice. Run returns at most a
	// second later; the results of functions are discarded.
	Vanish func()
	// Freeze makes the worker behave as a process that was stopped: no heartbeat, no
	// claim, and nothing that ends is written, until Thaw or the end of Run's
	// context. Functions go on. What was on its way to the store may commit.
	Freeze func()
	// Thaw ends a Freeze.
	Thaw func()
	// ReadObject reads an object of the present membership of a worker with an object
	// store. A manual one does not serve its objects: its owner reads them
	// here.
	ReadObject func(object string, size int64) (value []byte, found bool)
	// DropObject makes it lose an object, as damage would, and reports whether it had
	// it. The store is not told.
	DropObject func(object string) bool
	// Room is what its object store has left, in bytes, below 0 without one, and what
	// it holds, with what the store needs for that.
	Room func() (free, used int64)
	// Keep has it hold a value for a future that is to be put, as an upload does. It
	// returns what results.Value needs, and an error if it has no room, or stops.
	Keep func(ctx context.Context, id [16]byte, value []byte) (object, worker string, err error)
	// Take has it take a copy of the result of a future from the workers that have it,
	// as one that is asked over a connection; alone has those drop theirs. Its errors
	// are those of held.Refused.
	Take func(ctx context.Context, id [16]byte, alone bool) error

	// RoomOf and Give are how a manual worker that leaves reaches others: what is left in
	// another one's object store, below 0 if that does not answer, and its Take. Others
	// set them; without them, Leave hands over nothing.
	RoomOf func(worker string) int64
	Give   func(ctx context.Context, worker string, id [16]byte, alone bool) error
}

// PeerWorker gives access to the inside of a worker without access to the store of its
// heads. Options of package peerworker take it.
type PeerWorker struct {
	// Open opens the worker's own store in place of the directory of its state, which is
	// to be set too. The worker closes what it returns; what is in the store may stay.
	Open func(ctx context.Context) (kv.Database, error)
}
