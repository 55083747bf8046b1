//go:build fdb

package fdbkv

import (
	"errors"

	"github.com/apple/foundationdb/bindings/go/src/fdb"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// ErrNotOwner is returned by Commit of a wrapped transaction, and by its
// watches: its owner commits it.
var ErrNotOwner = errors.New("fdbkv: the transaction's owner commits it, and sets its watches")

// FoundationDB's error codes that mean something to the contract.
const (
	codeTooOld            = 1007
	codeFutureVersion     = 1009
	codeConflict          = 1020
	codeUnknownResult     = 1021
	codeCancelled         = 1025
	codeTimedOut          = 1031
	codeTooManyWatches    = 1032
	codeUnreadable        = 1036
	codeProcessBehind     = 1037
	codeDatabaseLocked    = 1038
	codeClusterChanged    = 1039
	codeProxyMemory       = 1042
	codeBatchThrottled    = 1051
	codeGRVProxyMemory    = 1078
	codeOperationCanceled = 1101
	codeTagThrottled      = 1213
	codeProxyTagThrottled = 1223
	codeIllegalKey        = 2004
	codeInvertedRange     = 2005
	codeVersionAlreadySet = 2010
	codeUsedDuringCommit  = 2017
	codeTxTooLarge        = 2101
	codeKeyTooLarge       = 2102
	codeValueTooLarge     = 2103
)

// Error is one of FoundationDB's errors and what it means to the contract.
// errors.Is finds the error of package kv in it, and errors.As the fdb.Error,
// so that a user's own transaction retries by it.
type Error struct {
	meaning error
	cause   fdb.Error
}

// Error implements error.
func (e *Error) Error() string { return e.meaning.Error() + ": " + e.cause.Error() }

// Unwrap returns both errors.
func (e *Error) Unwrap() []error { return []error{e.meaning, e.cause} }

// translate gives err, of a read or of a watch, its meaning.
func translate(err error) error { return translateBy(err, meaning) }

// translateCommit gives an error of a commit its meaning.
func translateCommit(err error) error {
	return translateBy(err, func(code int) error {
		switch code {
		case codeUnknownResult, codeCancelled, codeTimedOut, codeClusterChanged:
			return kv.ErrUnknownResult
		}
		return meaning(code)
	})
}

func translateBy(err error, meaning func(code int) error) error {
	var cause fdb.Error
	if !errors.As(err, &cause) {
		return err
	}
	if m := meaning(cause.Code); m != nil {
		return &Error{meaning: m, cause: cause}
	}
	return err
}

// meaning returns the contract's error for a code, nil if it has none.
func meaning(code int) error {
	switch code {
	case codeConflict:
		return kv.ErrConflict
	case codeTooOld:
		return kv.ErrTooOld
	case codeFutureVersion:
		return kv.ErrFutureVersion
	case codeProcessBehind, codeDatabaseLocked, codeProxyMemory, codeBatchThrottled, codeGRVProxyMemory,
		codeTagThrottled, codeProxyTagThrottled, codeClusterChanged:
		return kv.ErrUnavailable
	case codeUnknownResult:
		return kv.ErrUnknownResult
	case codeCancelled, codeUsedDuringCommit, codeVersionAlreadySet:
		return kv.ErrUsed
	case codeOperationCanceled:
		return kv.ErrCancelled
	case codeTooManyWatches:
		return kv.ErrTooManyWatches
	case codeUnreadable:
		return kv.ErrUnreadable
	case codeIllegalKey, codeInvertedRange:
		return kv.ErrIllegalKey
	case codeTxTooLarge:
		return kv.ErrTxTooLarge
	case codeKeyTooLarge:
		return kv.ErrKeyTooLarge
	case codeValueTooLarge:
		return kv.ErrValueTooLarge
	}
	return nil
}
