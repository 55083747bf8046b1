package wasm

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kinds of failure, as they are recorded with a future.
const (
	// KindError is a call that could not be made as asked for.
	KindError = "error"
	// KindExit is a function that ended with an exit code other than zero.
	KindExit = "exit"
	// KindPanic is a function that trapped: unreachable code, an access out of
	// bounds, a stack that overflowed.
	KindPanic = "panic"
	// KindTimeout is a function that ran longer than it may.
	KindTimeout = "timeout"
	// KindMemory is a function that failed after memory was refused to it, or
	// that declares more than it may have.
	KindMemory = "memory"
	// KindLost is a call whose process died for no known reason.
	KindLost = "lost"
	// KindCancelled is a call whose context was cancelled.
	KindCancelled = "cancelled"
	// KindUnloadable is a module that can't be run, now or later; one that took too much memory to compile may run
	// a minute later.
	KindUnloadable = "unloadable"
	// KindTooLarge is a module, input or output beyond its bound.
	KindTooLarge = "too_large"
)

// kindStale is code that must be compiled anew. It never leaves the package.
const kindStale = "stale"

// ErrClosed is returned when an Executor is used after Close, and by calls that
// Close ended.
var ErrClosed = errors.New("wasm: the executor is closed")

// ErrBadConfig is returned by New for a Config that can't be.
var ErrBadConfig = errors.New("wasm: invalid configuration")

// Error is why a call failed.
type Error struct {
	// Kind is one of the constants above.
	Kind string
	// Message says what went wrong, in at most 8 KiB.
	Message string
	// Err is what caused it, or nil.
	Err error
}

// Error returns kind and message.
func (e *Error) Error() string { return "wasm: " + e.Kind + ": " + e.Message }

// Unwrap returns what caused the failure.
func (e *Error) Unwrap() error { return e.Err }

// FailureKind returns the kind, for callers that know no more of this package
// than this method.
func (e *Error) FailureKind() string { return e.Kind }

func failf(kind, format string, args ...any) *Error {
	message := fmt.Sprintf(format, args...)
	if len(message) > maxMessage {
		message = message[:maxMessage-3] + "..."
	}
	return &Error{Kind: kind, Message: message}
}

func fail(kind string, err error) *Error {
	failure := failf(kind, "%v", err)
	failure.Err = err
	return failure
}

// asError returns err as an *Error, wrapping it as kind if it is not one.
func asError(kind string, err error) *Error {
	var failure *Error
	if errors.As(err, &failure) {
		return failure
	}
	return fail(kind, err)
}

// timeLimit is the cause of a context that ends with the time of a call.
type timeLimit struct {
	limit  time.Duration
	doing  string
	wayOut string
}

func (t *timeLimit) Error() string {
	return fmt.Sprintf("%s took longer than its limit of %v%s", t.doing, t.limit, t.wayOut)
}

// ended returns the failure of a call whose context is done.
func ended(ctx context.Context) *Error {
	cause := context.Cause(ctx)
	var limit *timeLimit
	switch {
	case errors.As(cause, &limit):
		return fail(KindTimeout, cause)
	case errors.Is(cause, context.DeadlineExceeded):
		failure := failf(KindTimeout, "the caller's deadline passed")
		failure.Err = cause
		return failure
	}
	failure := failf(KindCancelled, "the call was cancelled: %v", cause)
	failure.Err = cause
	return failure
}

func functionLimit(c *call) *timeLimit {
	return &timeLimit{limit: c.timeout, doing: "the function", wayOut: "; raise the timeout of the call"}
}
