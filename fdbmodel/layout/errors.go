package layout

import (
	"errors"
)

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
	// ErrBadConfig is returned for settings that a cluster can't have.
	ErrBadConfig = errors.New("bad settings of a cluster")
	// ErrBadWorker is returned when a worker can't be registered as it is
	// described.
	ErrBadWorker = errors.New("bad worker")
	// ErrUnfit is returned when a worker can never run a future: it doesn't serve
	// its queue, doesn't know its function, or is too small.
	ErrUnfit = errors.New("the worker can't run the future")
	// ErrBadCursor is returned for a cursor that belongs to no list of this kind.
	ErrBadCursor = errors.New("bad cursor: begin again without one")
	// ErrBadKey is returned for text that isn't a key, and for a prefix that no key
	// has.
	ErrBadKey = errors.New("bad key")
	// ErrOldFormat is returned when a cluster was written in a format of the
	// keyspace that this version doesn't read.
	ErrOldFormat = errors.New("keyspace format is too old: finish its futures with the version that wrote them, " +
		"and begin a new cluster")
)

// IsUnreadable tells whether err says that a record can't be read, by this
// process or at all.
func IsUnreadable(err error) bool {
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
