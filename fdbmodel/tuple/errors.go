package tuple

import (
	"errors"
	"fmt"
)

// Conditions of packing.
var (
	// ErrUnsupported is returned when an element has a type that a tuple can't
	// hold.
	ErrUnsupported = errors.New("tuple: type of element is not supported")
	// ErrIntegerTooLarge is returned when an integer has more than 255 bytes.
	ErrIntegerTooLarge = errors.New("tuple: integer is longer than 255 bytes")
	// ErrIncompleteStamp is returned by Pack when the tuple has an incomplete
	// stamp: PackIncomplete packs those.
	ErrIncompleteStamp = errors.New("tuple: an incomplete stamp needs PackIncomplete")
	// ErrStampCount is returned by PackIncomplete when the tuple does not have
	// exactly one incomplete stamp.
	ErrStampCount = errors.New("tuple: need exactly one incomplete stamp")
)

// Conditions of packing and unpacking.
var (
	// ErrTooDeep is returned when tuples are nested deeper than MaxDepth.
	ErrTooDeep = errors.New("tuple: nested deeper than 32 tuples")
)

// Conditions of unpacking, inside of a DecodeError.
var (
	// ErrTruncated is returned when the bytes end inside of an element.
	ErrTruncated = errors.New("tuple: bytes end inside of an element")
	// ErrUnknownCode is returned when a byte begins no element.
	ErrUnknownCode = errors.New("tuple: unknown element code")
	// ErrNotCanonical is returned when an element is longer than needed.
	ErrNotCanonical = errors.New("tuple: element is not in its shortest form")
	// ErrUnexpected is returned by a Reader when the next element has another
	// type than asked for, or does not fit it.
	ErrUnexpected = errors.New("tuple: element of another type")
	// ErrTrailing is returned by Reader.Done when elements are left.
	ErrTrailing = errors.New("tuple: elements are left")
)

// DecodeError says where bytes stop to be a tuple.
type DecodeError struct {
	// Offset is the index of the element's first byte.
	Offset int
	// Code is that byte, 0 at the end of the bytes.
	Code byte
	// Err is the condition, one of this package's errors.
	Err error
}

// Error implements error.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("%v (code 0x%02x at byte %d)", e.Err, e.Code, e.Offset)
}

// Unwrap returns the condition.
func (e *DecodeError) Unwrap() error { return e.Err }
