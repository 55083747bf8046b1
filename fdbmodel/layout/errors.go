package layout

import (
	"errors"
)

// Invalid names and records. Nothing was changed.
var (
	// ErrBadID is returned for an invalid id.
	ErrBadID = errors.New("not a future id")
	// ErrBadName is returned for an invalid name of a cluster, queue, function
	// or alias.
	ErrBadName = errors.New("bad name")
	// ErrBadSpec is returned when a future can't be submitted as described.
	ErrBadSpec = errors.New("bad future")
	// ErrBadConfig is returned for invalid settings of a cluster.
	ErrBadConfig = errors.New("bad settings of a cluster")
	// ErrBadWorker is returned when a worker can't be registered as described.
	ErrBadWorker = errors.New("bad worker")
	// ErrUnfit is returned when a worker can never run a future, or if asked for
	// none could: it doesn't serve its queue, doesn't know its function, or is too
	// small.
	ErrUnfit = errors.New("the future can't be run")
	// ErrBadCursor is returned for an invalid cursor, or one from another kind
	// of list.
	ErrBadCursor = errors.New("bad cursor: start again without one")
	// ErrBadKey is returned for text that is not a valid key, and for a prefix
	// that no key can have.
	ErrBadKey = errors.New("bad key")
	// ErrOldFormat is returned when a cluster was written in a key layout that
	// this version can't read.
	ErrOldFormat = errors.New("keyspace format is too old: finish its futures with the version that wrote them, " +
		"and create a new cluster; restore a backup with the version that wrote it")
)

// IsUnreadable reports whether err says that a record can't be read, either by
// this version or by any.
func IsUnreadable(err error) bool {
	return errors.Is(err, ErrNewerRecord) || errors.Is(err, ErrBadRecord)
}

// Conditions of the data in the store.
var (
	// ErrNotFound is returned when what a request names does not exist.
	ErrNotFound = errors.New("not found")
	// ErrTooLarge is returned when a value exceeds its limit. Nothing was changed.
	ErrTooLarge = errors.New("too large")
	// ErrNewerRecord is returned when a record was written by a newer version
	// of Futura. The record is left unchanged.
	ErrNewerRecord = errors.New("written by a newer version of futura; upgrade this process")
	// ErrBadRecord is returned when a record in the store can't be read.
	ErrBadRecord = errors.New("unreadable record")
)
