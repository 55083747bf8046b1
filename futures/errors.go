package futures

import (
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
)

var (
	// ErrFailed is what every FailedError is.
	ErrFailed = errors.New("the future failed")
	// ErrCancelled is what a FailedError of the kind cancelled is.
	ErrCancelled = errors.New("the future was cancelled")
	// ErrClosed is returned when the client was closed.
	ErrClosed = errors.New("futures: the client is closed")
	// ErrNotFound is returned when there is no such future, or no more.
	ErrNotFound = fdbmodel.ErrNotFound
)

// FailedError says how a future failed for good.
type FailedError struct {
	ID             ID
	Kind           fdbmodel.FailureKind
	Message        string
	Attempt        int
	Worker         fdbmodel.WorkerID
	ExitCode       int
	Stdout, Stderr []byte
}

// Error implements error.
func (e *FailedError) Error() string {
	return fmt.Sprintf("future %s failed (%s) in attempt %d on worker %s: %s",
		e.ID, e.Kind, e.Attempt, e.Worker, e.Message)
}

// Is makes errors.Is hold for ErrFailed, and for ErrCancelled if it is that.
func (e *FailedError) Is(target error) bool {
	return target == ErrFailed || (target == ErrCancelled && e.Kind == fdbmodel.KindCancelled)
}

func errNotFound(id ID) error { return fmt.Errorf("future %s: %w", id, ErrNotFound) }

func failedError(id ID, e *fdbmodel.Exception, stderr []byte) *FailedError {
	return &FailedError{
		ID: id, Kind: e.Kind, Message: e.Message, Attempt: e.Attempt, Worker: e.Worker, ExitCode: e.ExitCode,
		Stdout: e.Stdout, Stderr: stderr,
	}
}
