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
