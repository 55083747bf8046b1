package futures

import "context"

// Tracer follows the submits and awaits of a client. Its methods are called from many
// goroutines and must not block.
type Tracer interface {
	// Submit is called before tasks are submitted in one call, and returns the context to submit
	// them with: where that has layout.TraceKey, the futures of tasks without a Trace are part of
	// that trace, if they have room for it. ended is called once, with the handles of the futures
	// that exist then and the error of the call. For forks the tasks are empty: only their number is known.
	Submit(ctx context.Context, tasks []Task) (traced context.Context, ended func(made []*Future, err error))
	// Await is called before a call waits for futures. ended is called once, with the error that
	// the wait ended with: failures of futures are none. An Await or AwaitAll of futures that are
	// known to be over is not told.
	Await(ctx context.Context, fs []*Future) (ended func(err error))
}

// traced submits tasks as the tracer wants.
func (c *Client) traced(ctx context.Context, tasks []Task, submit func(context.Context) ([]*Future, error),
) (made []*Future, err error) {
	if c.options.Tracer == nil || len(tasks) == 0 {
		return submit(ctx)
	}
	ctx, ended := c.options.Tracer.Submit(ctx, tasks)
	defer func() { ended(made, err) }()
	return submit(ctx)
}

// traceAwait has the tracer follow an await.
func (c *Client) traceAwait(ctx context.Context, fs []*Future) (ended func(error)) {
	if c.options.Tracer == nil || len(fs) == 0 {
		return func(error) {}
	}
	return c.options.Tracer.Await(ctx, fs)
}
