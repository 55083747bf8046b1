package futures

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
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
	// Attempt counts from 1. Worker ran it, and RunTime is how long it took
	// there.
	Attempt int
	Worker  layout.WorkerID
	RunTime time.Duration
}

// Outcome is a Result or an error, as Await returns them.
type Outcome struct {
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

// Cancel asks for the end of the future: Applied means that it is over,
// Requested that its worker was asked, Already that it was over before.
func (f *Future) Cancel(ctx context.Context, reason string) (fdbmodel.Outcome, error) {
	outcome, _, err := f.client.cluster.Cancel(ctx, f.id, reason)
	return outcome, err
}

// Done is closed when the future's end is known here, so that Await returns at
// once. It is closed by Client.Close as well.
func (f *Future) Done() <-chan struct{} {
	// Without a listener Close has been called and all has ended.
	_ = f.client.listen()
	return f.client.registry.doneOf(f, f.client.listener.wake)
}

// Await returns the result once the future is over. It returns a *FailedError
// if it failed for good, and ErrNotFound if there is no such future, or no more.
// When ctx ends, the future goes on and may be awaited again.
func (f *Future) Await(ctx context.Context) (Result, error) {
	g := newGroup(1, false)
	if err := f.client.await(ctx, []*Future{f}, g); err != nil {
		return Result{}, err
	}
	o := f.client.registry.outcomeOf(f)
	return o.Result, o.Err
}

// AwaitAll returns the results of all futures in their order, once all are
// over. If some failed, theirs are empty and the error joins the failures, in
// the order of the futures. When ctx ends first, the results known so far are
// returned, and the error is ctx's, whatever failed. A future may be named more
// than once.
func (c *Client) AwaitAll(ctx context.Context, fs []*Future) ([]Result, error) {
	g := newGroup(len(fs), false)
	interrupted := c.await(ctx, fs, g)
	results := make([]Result, len(fs))
	var failures []error
	for i, f := range fs {
		o := f.client.registry.outcomeOf(f)
		if o == nil {
			continue
		}
		results[i] = o.Result
		if o.Err != nil {
			failures = append(failures, o.Err)
		}
	}
	if interrupted != nil {
		return results, interrupted
	}
	return results, errors.Join(failures...)
}

// AwaitEach returns the futures with their outcomes as they come, each once for
// every time it is named. When ctx ends, its error is the outcome of each that
// is left, in their order.
func (c *Client) AwaitEach(ctx context.Context, fs []*Future) iter.Seq2[*Future, Outcome] {
	return func(yield func(*Future, Outcome) bool) {
		g := newGroup(len(fs), true)
		waiters := c.join(fs, g)
		defer c.leave(fs, waiters)
		over := make([]bool, len(fs))
		for left := len(fs); left > 0; {
			ended := g.take()
			for _, i := range ended {
				over[i] = true
				if !yield(fs[i], *fs[i].client.registry.outcomeOf(fs[i])) {
					return
				}
			}
			if left -= len(ended); left == 0 || len(ended) > 0 {
				continue
			}
			if err := c.wait(ctx, g); err != nil {
				for i, f := range fs {
					if !over[i] && !yield(f, Outcome{Err: err}) {
						return
					}
				}
				return
			}
		}
	}
}

// await returns nil when all of fs are over.
func (c *Client) await(ctx context.Context, fs []*Future, g *group) error {
	waiters := c.join(fs, g)
	for !g.over() {
		if err := c.wait(ctx, g); err != nil {
			c.leave(fs, waiters)
			return err
		}
	}
	return nil
}

// wait returns nil when something of the group may have ended.
func (c *Client) wait(ctx context.Context, g *group) error {
	select {
	case <-g.signal:
		return nil
	default:
	}
	if c.options.Manual && c.options.Drive != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := c.options.Drive(ctx)
		select {
		case <-g.signal:
			return nil
		default:
			return err
		}
	}
	select {
	case <-g.signal:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// joinChunk is how many futures join a group while the registry is locked.
const joinChunk = 512

func (c *Client) join(fs []*Future, g *group) []waiter {
	waiters := make([]waiter, len(fs))
	for first := 0; first < len(fs); first += joinChunk {
		for i := first; i < min(first+joinChunk, len(fs)); i++ {
			waiters[i] = waiter{group: g, index: i}
		}
		eachClient(fs, first, min(first+joinChunk, len(fs)), func(of *Client, from, to int) {
			// Without a listener Close has been called and all has ended.
			_ = of.listen()
			of.registry.join(fs[from:to], waiters[from:to], of.listener.wake)
		})
	}
	return waiters
}

func (c *Client) leave(fs []*Future, waiters []waiter) {
	for first := 0; first < len(fs); first += joinChunk {
		eachClient(fs, first, min(first+joinChunk, len(fs)), func(of *Client, from, to int) {
			of.registry.leave(fs[from:to], waiters[from:to])
		})
	}
}

// eachClient cuts fs[from:to] where the futures' client changes.
func eachClient(fs []*Future, from, to int, fn func(of *Client, from, to int)) {
	for from < to {
		n := from + 1
		for n < to && fs[n].client == fs[from].client {
			n++
		}
		fn(fs[from].client, from, n)
		from = n
	}
}
