// Package taskcontext has what a Go function finds in its context: workers put it there, and
// clients take it, where neither knows the other.
package taskcontext

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// CodecKey is the context key under which a Go function finds the codec of its
// arguments, a string. Its result must use the same codec.
type CodecKey struct{}

// AwaitKey is the context key under which a Go function finds a
// func(context.Context, Awaited, Refuse) func(): a function that waits for other futures calls it with the
// context of the wait, and calls what it returns at the end. Meanwhile the worker
// gives the function's slot to others. The end returns once the function has a
// slot again, or one of the two contexts has ended.
type AwaitKey struct{}

// Awaited says what a wait is for now: one of the futures that are not known to be over, the zero id if
// it can't name one, and how many they are. Any goroutine may call it, even after the wait.
type Awaited func() (one layout.ID, count int)

// Refuse ends a wait with an error, instead of what it is for. Any goroutine may call it, even after the wait.
type Refuse func(error)

// NoteAwait says that a function begins to wait for futures, and how to refuse that; nil for a wait that can't be
// refused. It returns how to say that the wait has ended; see AwaitKey.
func NoteAwait(ctx context.Context, what Awaited, refuse Refuse) (ended func()) {
	if note, ok := ctx.Value(AwaitKey{}).(func(context.Context, Awaited, Refuse) func()); ok {
		return note(ctx, what, refuse)
	}
	return func() {}
}

// ClientKey is the context key under which a Go function finds the ClientSource of
// its worker.
type ClientKey struct{}

// ClientSource is how a function gets a client of the cluster that runs it.
// Workers don't know clients, so they hand out what they were given and keep what
// is made.
type ClientSource interface {
	// Given returns what the worker was made from. It has a method Cluster, and may
	// be a client.
	Given() any
	// Made returns the client that open has made, by this call or an earlier one.
	// The worker closes it when it stops. It returns open's error, and one of its
	// own after the worker has stopped.
	Made(open func(*slog.Logger) (MadeClient, error)) (MadeClient, error)
}

// ReaderMark ends the name by which a worker registers a reader of actors.
const ReaderMark = "?"

// DeadlineKey is the context key under which a Go function finds the deadline of its
// future, a time.Time, zero for none.
type DeadlineKey struct{}

// LaneKey is the context key under which a Go function finds the lane of its future, a
// layout.Lane, zero for none.
type LaneKey struct{}

// KeeperKey is the context key under which a Go function finds the Keeper of its
// worker, nil if that keeps no objects.
type KeeperKey struct{}

// Keeper holds objects for futures that are put.
type Keeper interface {
	// Keep stores a stream of about so many bytes, 0 if that is not known, as an object
	// for a future, which has to exist within a minute. It returns the error of the
	// object store if that has no room for it.
	Keep(ctx context.Context, id layout.ID, r io.Reader, about int64) (object string, size int64,
		holder layout.WorkerID, err error)
}

// MadeClient is a client that a worker closes.
type MadeClient interface{ Close(context.Context) error }

// StepsKey is the context key under which a Go function finds the Steps of its attempt.
type StepsKey struct{}

// Steps are the steps of the attempt that a function runs in. Its methods may be called from many
// goroutines.
type Steps interface {
	// Ask asks for a step by its name. The second one with a name gets a number, and so on: that is
	// the name to record it by. Recorded is nil for one that is to run.
	Ask(ctx context.Context, name string) (step string, recorded *RecordedStep, err error)
	// Begin says that the code of a step begins to run, and returns how to say that it has ended. Runs reports
	// whether the code of some step of the attempt runs.
	Begin() (ended func())
	Runs() bool
	// Record records what a step returned. It returns once that is durable.
	Record(ctx context.Context, step string, of RecordedStep) error
	// RecordTx records a step with what fn writes in the same transaction, and fn's value, which of has not. It
	// returns the value that is on record, and the version of the commit.
	RecordTx(ctx context.Context, step string, of RecordedStep, fn func(context.Context, kv.Tx) ([]byte, error),
	) (value []byte, version kv.Version, err error)
	// SleepUntil waits until a time. It ends the attempt if that is far off: the function is to return
	// the error.
	SleepUntil(ctx context.Context, t time.Time) error
	// Now is the time by the clock of the cluster.
	Now() time.Time
	// Pause waits for d, or until ctx ends, without the function's slot. Timeout is like
	// context.WithTimeout, by the clock of the cluster.
	Pause(ctx context.Context, d time.Duration) error
	Timeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// TurnKey is the context key under which a Go function finds the Turn of its attempt.
type TurnKey struct{}

// MaxTurnSubmits is how many futures an attempt submits with its result.
const MaxTurnSubmits = 100

// Turn is what the attempt that a function runs in makes of actors, and submits with its result. Its
// methods may be called from many goroutines, until the function returns.
type Turn interface {
	// Actors returns what the function sees of actors, in their order. The first call for an actor
	// reads its state, and calls join with it. Those that one call reads it reads at one version.
	Actors(ctx context.Context, refs []actors.Ref, join JoinActor) ([]any, error)
	// Parts returns parts of an actor that is in the turn, as the function has left them, and the name after
	// which the others come, empty at the end.
	Parts(ctx context.Context, ref actors.Ref, which actors.PartRange) (parts []actors.Part, next string, err error)
	// SetPart has the part of an actor that is in the turn be written or removed with the result.
	SetPart(ref actors.Ref, part actors.Part) error
	// DeleteParts says that the actor, which is in the turn, is removed by its end with all its parts: Parts finds
	// none from then on, and SetPart returns an error.
	DeleteParts(ref actors.Ref) error
	// Submit has futures submitted with the result, of submissions from Prepare.
	Submit(subs []fdbmodel.Submission) error
}

// JoinActor returns what a function sees of an actor with a state, and how that is encoded once
// the function has returned.
type JoinActor func(*actors.State) (seen any, end func() (actors.Change, error), err error)

// RecordedStep is what is recorded of a step.
type RecordedStep struct {
	Codec   string
	Value   []byte
	Attempt int
	Started time.Time
	// Wake is when a sleep ends, the zero time for other steps.
	Wake time.Time
}
