package kv

import (
	"errors"
	"slices"
)

// Conditions that may pass on another attempt of the same transaction. Transact
// retries them.
var (
	// ErrConflict is returned by Commit when another transaction wrote a key
	// that this one read. Nothing was written.
	ErrConflict = errors.New("conflict with another transaction")
	// ErrTooOld is returned when the transaction lived longer than TxLifetime,
	// or was told to read at a version that is no longer kept.
	ErrTooOld = errors.New("transaction is too old")
	// ErrFutureVersion is returned when the transaction was told to read at a
	// version that the store has not reached.
	ErrFutureVersion = errors.New("read version is in the future")
	// ErrUnavailable is returned when the store temporarily can't serve the
	// transaction and has written none of it: it is starting, moving or
	// throttling.
	ErrUnavailable = errors.New("store is unavailable for now")
	// ErrUnknownResult is returned by Commit when there is no way to know
	// whether the transaction was written.
	ErrUnknownResult = errors.New("result of the commit is unknown")
)

// Mistakes by the caller. Nothing was written.
var (
	// ErrKeyTooLarge is returned when a key is longer than MaxKeySize.
	ErrKeyTooLarge = errors.New("key is longer than 10,000 bytes")
	// ErrValueTooLarge is returned when a value is longer than MaxValueSize.
	ErrValueTooLarge = errors.New("value is longer than 100,000 bytes")
	// ErrTxTooLarge is returned by Commit when the transaction affects more
	// than MaxTxSize bytes.
	ErrTxTooLarge = errors.New("transaction is larger than 10,000,000 bytes")
	// ErrIllegalKey is returned when a key or range reaches 0xff or beyond,
	// which is reserved for the store, or when a range ends before it begins.
	ErrIllegalKey = errors.New("key is outside of the legal range")
	// ErrBadStampOffset is returned when fewer than ten bytes follow the offset
	// of an incomplete stamp.
	ErrBadStampOffset = errors.New("no room for a versionstamp at that offset")
	// ErrUnreadable is returned when a read may fall on a key that the
	// transaction wrote with an incomplete stamp, and by the commit of that transaction.
	ErrUnreadable = errors.New("read of a key with an incomplete versionstamp")
	// ErrUsed is returned when a transaction is used after Commit or Cancel,
	// and by SetReadVersion after the first read.
	ErrUsed = errors.New("transaction was already committed or cancelled")
	// ErrTooManyWatches is returned when more than MaxWatches are open.
	ErrTooManyWatches = errors.New("more than 10,000 watches are open")
	// ErrCancelled is a watch's error after it or its transaction was
	// cancelled.
	ErrCancelled = errors.New("cancelled")
)

// Conditions of the store as a whole.
var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("store is closed")
	// ErrStoreFailed is returned by every call once the store has failed to
	// write to its disk. Commits acknowledged before that are safe; the process
	// must exit and open the store again.
	ErrStoreFailed = errors.New("store has failed")
	// ErrReadOnly is returned by Commit when the store was opened and can't be
	// written, for example because its disk is full or mounted read-only. Nothing
	// was written, and reads go on.
	ErrReadOnly = errors.New("store can only be read")
	// ErrStoreInUse is returned by opening a store that another process, or
	// another part of this one, has open.
	ErrStoreInUse = errors.New("store is in use")
	// ErrCorrupt is returned by opening a store whose files were damaged.
	ErrCorrupt = errors.New("store is damaged")
	// ErrExposed is returned by opening a store whose files other users could
	// change, or that lie elsewhere.
	ErrExposed = errors.New("store is open to other users")
	// ErrNotBuilt is returned by opening a store whose driver this binary does
	// not contain.
	ErrNotBuilt = errors.New("driver is not part of this build")
)

// Mistaken reports whether the caller made a mistake in the transaction: another attempt fails as well.
func Mistaken(err error) bool {
	return slices.ContainsFunc([]error{
		ErrKeyTooLarge, ErrValueTooLarge, ErrTxTooLarge, ErrIllegalKey, ErrBadStampOffset, ErrUnreadable, ErrUsed,
	}, func(mistake error) bool { return errors.Is(err, mistake) })
}

// Retryable reports whether another attempt of the transaction may succeed.
func Retryable(err error) bool {
	return errors.Is(err, ErrConflict) || errors.Is(err, ErrTooOld) || errors.Is(err, ErrFutureVersion) ||
		errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnknownResult)
}

// MaybeCommitted reports whether the transaction that failed with err may have
// been written, or may yet be.
func MaybeCommitted(err error) bool { return errors.Is(err, ErrUnknownResult) }
