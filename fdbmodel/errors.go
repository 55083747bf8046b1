package fdbmodel

import "errors"

// Mistakes in what names and records say. Nothing was changed.
var (
	// ErrBadID is returned when text is not an id.
	ErrBadID = errors.New("not a future id")
	// ErrBadName is returned when a cluster, queue, function or alias has a
	// name that it can't have.
	ErrBadName = errors.New("bad name")
	// ErrBadSpec is returned when a future can't be submitted as it is
	// described.
	ErrBadSpec = errors.New("bad future")
)

// Mistakes in what was asked. Nothing was changed.
var (
	// ErrTooLarge is returned when arguments, a result or a module exceed
	// their limit.
	ErrTooLarge = errors.New("too large")
	// ErrNotFound is returned when there is no such future, worker, function
	// or module: it never was, or its retention has passed, or it was
	// discarded.
	ErrNotFound = errors.New("not found")
	// ErrIDInUse is returned by submit when the id or idempotency key belongs
	// to a future with other content.
	ErrIDInUse = errors.New("id is in use by a different future")
	// ErrTransition is returned when a future is in a state that does not
	// allow what was asked, such as a retry of one that is running.
	ErrTransition = errors.New("not possible in this state")
)

// isUnreadable tells whether err says that a record can't be read, by this
// process or at all.
func isUnreadable(err error) bool {
	return errors.Is(err, ErrNewerRecord) || errors.Is(err, ErrBadRecord)
}

// Conditions of the store's content.
var (
	// ErrNewerRecord is returned when a record was written by a newer version
	// of Futura than this one. The record is left alone.
	ErrNewerRecord = errors.New("written by a newer version of futura; upgrade this process")
	// ErrBadRecord is returned when a record in the store can't be read.
	ErrBadRecord = errors.New("unreadable record")
)

// ErrReaped is returned to a worker that was declared dead: its claims are
// others' now. It must stop what it runs and register again.
var ErrReaped = errors.New("worker was declared dead")

// Conditions of a whole cluster.
var (
	// ErrLive is returned when workers or sessions of a cluster that is to be
	// moved are alive. Nothing was written.
	ErrLive = errors.New("the cluster is in use")
	// ErrIncomplete is returned by opening a cluster that is being copied from
	// elsewhere, or where such a copy was cut off.
	ErrIncomplete = errors.New("the cluster is being copied from elsewhere, or a copy was cut off: " +
		"run the same migrate or restore again, which starts over")
)
