package futures

import (
	"context"
	"time"
)

// Result is what a future came to.
type Result struct {
	// Value is the encoded output of a Go function, or the standard output of a
	// WASM module; Codec says how its bytes are meant. Callers who await the
	// same future share the slice.
	Value []byte
	Codec string
	// ExitCode and Stderr are a WASM module's. Truncated is set when Stderr is
	// the end of a longer stream.
	ExitCode  int
	Stderr    []byte
	Truncated bool
	// Attempt counts from 1. Worker ran it, and RunTime is how long it took there.
	Attempt int
	Worker  WorkerID
	RunTime time.Duration
}

// Settled is a Result or an error, as Await returns them.
type Settled struct {
	Result Result
	Err    error
}

// Future is a handle on a future. Once its end is known here it keeps it.
type Future struct {
	client  *Client
	id      ID
	existed bool
	entry   *entry // guarded by the registry; nil until its end is asked for
}

// ID returns the future's id.
func (f *Future) ID() ID { return f.id }

// Existed tells whether the future was there before it was submitted here, by
// its id or key.
func (f *Future) Existed() bool { return f.existed }

// Cancel asks for the end of the future; see Client.Cancel.
func (f *Future) Cancel(ctx context.Context, reason string) (Cancellation, error) {
	return f.client.Cancel(ctx, f.id, reason)
}

// Done is closed when the future's end is known here, so that Await returns at
// once. It is closed by Client.Close as well.
func (f *Future) Done() <-chan struct{} {
	// Without a listener Close has been called and all has ended.
	_ = f.client.listen()
	return f.client.registry.doneOf(f, f.client.listener.wake)
}
