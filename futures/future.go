package futures

import (
	"context"
	"time"

	"github.com/futura-run/futura/fdbmodel"
)

// Result is the outcome of a future.
type Result struct {
	// Value is the encoded output of a Go function, or the standard output of a
	// WASM module; Codec is its encoding. Callers that await the same future share
	// the slice.
	Value []byte
	Codec string
	// ExitCode and Stderr are those of a WASM module. Truncated is set if Stderr
	// is the end of a longer stream.
	ExitCode  int
	Stderr    []byte
	Truncated bool
	// Attempt counts from 1. Worker is the worker that ran it, and RunTime its
	// duration.
	Attempt int
	Worker  WorkerID
	RunTime time.Duration
}

// Settled is a Result or an error, as Await returns them.
type Settled struct {
	Result Result
	Err    error

	unread    bool // the future is over, and its large result is not here
	abandoned bool // the client has ended, and the future may go on
}

// Future is a handle on a future. Once the end of the future is known to its
// client, the handle keeps it.
type Future struct {
	client  *Client
	id      ID
	existed bool
	lane    Lane // that it was submitted to by this handle
	// differs and replaced are about another future with the same unique key.
	differs  string
	replaced ID
	entry    *entry // guarded by the registry; nil until its end is asked for
}

// ID returns the future's id, and the zero id of nil.
func (f *Future) ID() ID {
	if f == nil {
		return ID{}
	}
	return f.id
}

// Existed reports whether the future, by its id, key or unique key, existed before
// it was submitted here.
func (f *Future) Existed() bool { return f.existed }

// Differs says what of a future that existed is not as it was submitted here; empty if
// nothing is. With the same id or key these are its settings, such as "priority, timeout":
// those of the first submit count. Where ConflictReturn returned another future it is the
// first part of the content, such as "arguments".
func (f *Future) Differs() string { return f.differs }

// Replaced returns the future that was cancelled because this one was submitted with
// ConflictReplace, the zero id for none.
func (f *Future) Replaced() ID { return f.replaced }

func (f *Future) answered(s *fdbmodel.Submitted) {
	f.existed, f.differs, f.replaced = s.Existed, s.Differs, s.Replaced
}

// Cancel cancels the future; see Client.Cancel.
func (f *Future) Cancel(ctx context.Context, reason string) (Cancellation, error) {
	return f.client.Cancel(ctx, f.id, reason)
}

// Done returns a channel that is closed once the future's end is known to its
// client, so that Await returns at once, and by Client.Close.
func (f *Future) Done() <-chan struct{} {
	// Without a listener, Close has been called and every entry has ended.
	_ = f.client.listen()
	return f.client.registry.doneOf(f, f.client.listener.wake)
}
