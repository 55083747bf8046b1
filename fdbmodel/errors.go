package fdbmodel

import (
	"errors"
	"slices"

	"github.com/futura-run/futura/fdbmodel/internal/lane"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/state"
)

// Invalid requests. Nothing was changed.
var (
	// ErrTooLarge is returned when arguments, a result or a module exceed
	// their limit.
	ErrTooLarge = layout.ErrTooLarge
	// ErrNotFound is returned when a future, worker, function or module does
	// not exist: it never existed, its retention has passed, or it was
	// discarded.
	ErrNotFound = layout.ErrNotFound
	// ErrIDInUse is returned by submit when the id or idempotency key belongs
	// to a future with other content.
	ErrIDInUse = errors.New("id is in use by a different future")
	// ErrInUse is returned by removing a module, or a kind of lanes, that futures use.
	ErrInUse = errors.New("in use")
	// ErrExists is returned by making a schedule whose name another one has.
	ErrExists = errors.New("exists already")
	// ErrTooManyKinds is returned by making a kind of lanes in a cluster that has
	// layout.MaxLaneKinds.
	ErrTooManyKinds = errors.New("too many kinds of lanes")
	// ErrLaneFull is returned by a submit to a lane in which as many futures wait as its kind
	// allows. It may succeed later.
	ErrLaneFull = lane.ErrFull
	// ErrTransition is returned when a future is in a state that does not allow
	// the request, such as a retry of one that is running.
	ErrTransition = state.ErrTransition
)

// LaneFullError is an ErrLaneFull with the lane, and the futures that find no place in it.
type LaneFullError = lane.FullError

// ErrReaped is returned to a worker that was declared dead: it has lost its
// claims. It must stop the futures that it runs and register again.
var ErrReaped = errors.New("worker was declared dead")

// IsMistake reports whether an error was caused by the request: repeating it
// will fail again, and nothing was changed.
func IsMistake(err error) bool {
	return slices.ContainsFunc([]error{
		layout.ErrBadID, layout.ErrBadName, layout.ErrBadSpec, layout.ErrBadConfig, layout.ErrBadWorker, layout.ErrUnfit,
		layout.ErrBadCursor, layout.ErrBadKey, ErrTooLarge, ErrIDInUse, ErrInUse, ErrExists, ErrTransition,
		ErrNotUnique, ErrTooManyKinds,
	}, func(mistake error) bool { return errors.Is(err, mistake) })
}

// Conditions of a whole cluster.
var (
	// ErrLive is returned when workers or sessions of a cluster that must be
	// quiet are alive. Nothing was written.
	ErrLive = errors.New("the cluster is in use")
	// ErrIncomplete is returned by opening a cluster that is being copied from
	// elsewhere, or whose copy was interrupted.
	ErrIncomplete = errors.New("the cluster is being copied from elsewhere, or a copy was interrupted: " +
		"run the same migrate or restore again, which starts over")
)
