package futures

import (
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

var (
	// ErrFailed is returned when a future failed for good: it is what every
	// FailedError is.
	ErrFailed = errors.New("the future failed")
	// ErrCancelled is returned when a future failed because it was cancelled: it
	// is what a FailedError of the kind cancelled is, beside ErrFailed.
	ErrCancelled = errors.New("the future was cancelled")
	// ErrClosed is returned when the client was closed.
	ErrClosed = errors.New("futures: the client is closed")
	// ErrNotFound is returned when there is no such future: it never was, or
	// its retention has passed, or it was discarded.
	ErrNotFound = fdbmodel.ErrNotFound
)

// FailedError says how a future failed for good. Errors.Is holds for ErrFailed,
// and for ErrCancelled if Kind is layout.KindCancelled.
type FailedError struct {
	ID      ID
	Kind    layout.FailureKind
	Message string
	// Attempt is the last one, from 1, and Worker who ran it: 0 and empty if
	// none ran.
	Attempt int
	Worker  layout.WorkerID
	// ExitCode, Stdout and Stderr are a WASM module's, of the last attempt.
	ExitCode       int
	Stdout, Stderr []byte
}

// Error implements error.
func (e *FailedError) Error() string {
	text := fmt.Sprintf("future %s failed (%s)", e.ID, e.Kind)
	if e.Attempt > 0 {
		text += fmt.Sprintf(" in attempt %d", e.Attempt)
	}
	if e.Worker != "" {
		text += fmt.Sprintf(" on worker %s", e.Worker)
	}
	return text + ": " + e.Message
}

// Is makes errors.Is hold for ErrFailed, and for ErrCancelled if it is that.
func (e *FailedError) Is(target error) bool {
	return target == ErrFailed || (target == ErrCancelled && e.Kind == layout.KindCancelled)
}

func errNotFound(id ID) error { return fmt.Errorf("future %s: %w", id, ErrNotFound) }

func failedError(id ID, e *layout.Exception, stderr []byte) *FailedError {
	return &FailedError{
		ID: id, Kind: e.Kind, Message: e.Message, Attempt: e.Attempt, Worker: e.Worker, ExitCode: e.ExitCode,
		Stdout: e.Stdout, Stderr: stderr,
	}
}
