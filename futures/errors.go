package futures

import (
	"errors"
	"fmt"
)

var (
	// ErrFailed is returned when a future failed for good: every FailedError
	// matches it.
	ErrFailed = errors.New("the future failed")
	// ErrCancelled is returned when a future failed because it was cancelled: a
	// FailedError of the kind cancelled matches it as well as ErrFailed.
	ErrCancelled = errors.New("the future was cancelled")
	// ErrNilFuture is returned when one of several futures that are awaited is nil.
	ErrNilFuture = errors.New("futures: the future is nil")
	// ErrClosed is returned when the client was closed.
	ErrClosed = errors.New("futures: the client is closed")
	// ErrOutsideFunction is returned by FromContext when the context is not that of
	// a Go function that a worker runs.
	ErrOutsideFunction = errors.New("futures: the context is not that of a function that a worker runs: " +
		"pass on the context that the function was given, or make a client with New")
)

// FailedError describes how a future failed for good. Errors.Is holds for
// ErrFailed, and for ErrCancelled if Kind is KindCancelled.
type FailedError struct {
	ID       ID
	Function string
	Kind     FailureKind
	Message  string
	// Attempt is the last attempt, counted from 1, and Worker is the worker that
	// ran it: 0 and empty if there was none.
	Attempt int
	Worker  WorkerID
	// ExitCode, Stdout and Stderr are those of a WASM module's last attempt.
	ExitCode       int
	Stdout, Stderr []byte
}

// Error implements error.
func (e *FailedError) Error() string {
	text := fmt.Sprintf("future %s of %s failed (%s)", e.ID, e.Function, e.Kind)
	if e.Attempt > 0 {
		text += fmt.Sprintf(" in attempt %d", e.Attempt)
	}
	if e.Worker != "" {
		text += fmt.Sprintf(" on worker %s", e.Worker)
	}
	return text + ": " + e.Message
}

// Is makes errors.Is hold for ErrFailed, and for ErrCancelled if Kind is
// KindCancelled.
func (e *FailedError) Is(target error) bool {
	return target == ErrFailed || (target == ErrCancelled && e.Kind == KindCancelled)
}

func errNotFound(id ID) error { return fmt.Errorf("future %s: %w", id, ErrNotFound) }

// WaitError says that an await ended because of its context, before its future
// was over. Errors.Is holds for the context's error. The future goes on and may
// be awaited again.
type WaitError struct {
	ID ID
	// State is the last known state of the future, 0 if it could not be read in
	// time.
	State State
	// Reason is a sentence that says why the future is not running, or where it
	// runs; or that the store has not answered.
	Reason string
	// Cause is the reason why the await ended.
	Cause error
}

// Error implements error.
func (e *WaitError) Error() string {
	switch {
	case e.State == 0 && e.Reason == "":
		return fmt.Sprintf("await of future %s: %v", e.ID, e.Cause)
	case e.State == 0:
		return fmt.Sprintf("await of future %s: %v; %s", e.ID, e.Cause, e.Reason)
	}
	return fmt.Sprintf("await of future %s: %v; it is %s: %s", e.ID, e.Cause, e.State, e.Reason)
}

// Unwrap returns the cause.
func (e *WaitError) Unwrap() error { return e.Cause }

// maxFailureTexts is how many failures the text of an error has that joins many.
const maxFailureTexts = 10

// failures is an error that joins others, of which its text has some.
type failures []error

// joinFailures joins errors, and returns nil for none.
func joinFailures(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return failures(errs)
}

// failuresOf returns what joinFailures has joined.
func failuresOf(err error) []error {
	if err == nil {
		return nil
	}
	if all, ok := err.(failures); ok {
		return all
	}
	return []error{err}
}

// Error implements error.
func (f failures) Error() string {
	text := errors.Join(f[:min(len(f), maxFailureTexts)]...).Error()
	if more := len(f) - maxFailureTexts; more > 0 {
		text = fmt.Sprintf("%s\nand %d more", text, more)
	}
	return text
}

// Unwrap is for errors.Is and errors.As.
func (f failures) Unwrap() []error { return f }

// permanentError makes workers fail the future of a function without a retry.
type permanentError struct{ error }

// Permanent returns true: no further attempt can succeed.
func (permanentError) Permanent() bool { return true }

// Unwrap returns the cause.
func (e permanentError) Unwrap() error { return e.error }
