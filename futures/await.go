package futures

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/futura-run/futura/internal/taskcontext"
)

// Await returns the result once the future is over. It returns a *FailedError
// if it failed for good, and ErrNotFound if the future does not exist or has
// been removed. When ctx ends, it returns a *WaitError with the state of the
// future; the future goes on and may be awaited again. In a function it returns
// ErrOwnLane or ErrCircle instead of waiting for ever.
func (f *Future) Await(ctx context.Context) (Result, error) {
	g := newGroup(1, false)
	if err := f.client.await(ctx, []*Future{f}, g); err != nil {
		return Result{}, f.unsettled(ctx, err)
	}
	o := f.client.registry.settledOf(f)
	return o.Result, o.Err
}

// AwaitEnd is Await without the result: a large one is not read, unless others of this client want it. It returns
// nil for a future that is realized. When ctx ends, it returns ctx's error, and does not look for the reason.
func (f *Future) AwaitEnd(ctx context.Context) error {
	interrupted, ended := f.awaitEnd(ctx)
	return cmp.Or(interrupted, ended)
}

func (f *Future) awaitEnd(ctx context.Context) (interrupted, ended error) {
	g := newGroup(1, false)
	g.light = true
	if err := f.client.await(ctx, []*Future{f}, g); err != nil {
		return err, nil
	}
	if o := f.client.registry.settledOf(f); o != nil {
		return nil, o.Err
	}
	return nil, nil
}

// AwaitAll returns the results of all futures in their order, once all are
// over. If some failed, their results are empty and the error joins the
// failures, in the order of the futures: errors.Is and errors.As see all, and its text
// has the first ten and the number of the others. When ctx ends first, the results known
// so far are returned, and the error is a *WaitError of the first future that
// is not over, even if others failed. A future may be named more than once. It returns
// ErrNilFuture if one is nil.
func (c *Client) AwaitAll(ctx context.Context, fs []*Future) ([]Result, error) {
	if err := checkFutures(fs); err != nil {
		return nil, err
	}
	g := newGroup(len(fs), false)
	interrupted := c.await(ctx, fs, g)
	results := make([]Result, len(fs))
	var failures []error
	for i, f := range fs {
		o := f.client.registry.settledOf(f)
		if o == nil {
			continue
		}
		results[i] = o.Result
		if o.Err != nil {
			failures = append(failures, o.Err)
		}
	}
	if interrupted != nil {
		return results, firstUnsettled(ctx, fs, interrupted)
	}
	return results, joinFailures(failures)
}

// AwaitAny returns the first of the futures that is over, and nil if fs is
// empty. When ctx ends, it returns a *WaitError of the first of fs. It returns
// ErrNilFuture if one is nil, and ErrClosed after Close.
func (c *Client) AwaitAny(ctx context.Context, fs []*Future) (*Future, error) {
	if err := checkFutures(fs); err != nil {
		return nil, err
	}
	for f, settled := range c.AwaitEach(ctx, fs) {
		if f.client.registry.settledOf(f) == nil || settled.abandoned {
			return nil, settled.Err
		}
		return f, nil
	}
	return nil, nil
}

// explainTime bounds how long an await that has ended looks for the reason.
const explainTime = 2 * time.Second

// unsettled is the error of an await that ended with its context. A client
// reads one future at a time, and briefly: awaits that end together don't each
// query the store.
func (f *Future) unsettled(ctx context.Context, cause error) error {
	if ctx.Err() == nil {
		return cause
	}
	e := &WaitError{ID: f.id, Cause: cause}
	c := f.client
	if !c.explaining.TryLock() {
		return e
	}
	defer c.explaining.Unlock()
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), explainTime)
	defer cancel()
	explanation, err := c.Explain(looking, f.id)
	switch {
	case err == nil:
		e.State, e.Reason = explanation.State, explanation.Text
	case looking.Err() != nil:
		e.Reason = fmt.Sprintf("the store has not said in %v what it waits for", explainTime)
	}
	return e
}

// firstUnsettled is the error of the first future that is not over.
func firstUnsettled(ctx context.Context, fs []*Future, cause error) error {
	for _, f := range fs {
		if f.client.registry.settledOf(f) == nil {
			return f.unsettled(ctx, cause)
		}
	}
	return cause
}

// AwaitEach returns the futures as they settle, each as often as it is named.
// When ctx ends, the remaining futures follow in their order, each with a
// *WaitError, of which the first has the state and the reason. If one of fs is nil, it
// returns nothing but that one, with ErrNilFuture.
func (c *Client) AwaitEach(ctx context.Context, fs []*Future) iter.Seq2[*Future, Settled] {
	return func(yield func(*Future, Settled) bool) {
		if err := checkFutures(fs); err != nil {
			yield(nil, Settled{Err: err})
			return
		}
		var interrupted error
		ended := c.traceAwait(ctx, fs)
		defer func() { ended(interrupted) }()
		g := newGroup(len(fs), true)
		waiters := c.join(fs, g)
		defer c.leave(fs, waiters)
		over := make([]bool, len(fs))
		for left := len(fs); left > 0; {
			settled := g.take()
			for _, i := range settled {
				over[i] = true
				if !yield(fs[i], *fs[i].client.registry.settledOf(fs[i])) {
					return
				}
			}
			if left -= len(settled); left == 0 || len(settled) > 0 {
				continue
			}
			if interrupted = c.wait(ctx, fs, g); interrupted != nil {
				c.yieldLeft(ctx, fs, over, interrupted, yield)
				return
			}
		}
	}
}

// yieldLeft passes on the futures that are not over when an await ends.
func (c *Client) yieldLeft(ctx context.Context, fs []*Future, over []bool, cause error,
	yield func(*Future, Settled) bool,
) {
	explained := false
	for i, f := range fs {
		if over[i] {
			continue
		}
		err := cause
		if !explained {
			err, explained = f.unsettled(ctx, cause), true
		} else if ctx.Err() != nil {
			err = &WaitError{ID: f.id, Cause: cause}
		}
		if !yield(f, Settled{Err: err}) {
			return
		}
	}
}

// checkFutures returns ErrNilFuture with the place of the first that is nil.
func checkFutures(fs []*Future) error {
	if at := slices.Index(fs, nil); at >= 0 {
		return fmt.Errorf("%w: number %d of %d, counted from 0", ErrNilFuture, at, len(fs))
	}
	return nil
}

// await returns nil when all of fs are over.
func (c *Client) await(ctx context.Context, fs []*Future, g *group) (err error) {
	waiters := c.join(fs, g)
	if !g.over() {
		ended := c.traceAwait(ctx, fs)
		defer func() { ended(err) }()
		if err := c.blockedByCaller(ctx, fs); err != nil {
			c.leave(fs, waiters)
			return err
		}
	}
	for !g.over() {
		if err := c.wait(ctx, fs, g); err != nil {
			c.leave(fs, waiters)
			return err
		}
	}
	return nil
}

// wait returns nil when a future of the group may have ended.
func (c *Client) wait(ctx context.Context, fs []*Future, g *group) error {
	select {
	case <-g.signal:
		return g.refusal()
	default:
	}
	defer taskcontext.NoteAwait(ctx, func() (ID, int) { return firstOpen(fs), g.open() }, g.refuse)()
	if c.manual() && c.options.Seam.Drive != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := c.options.Seam.Drive(ctx)
		select {
		case <-g.signal:
			return nil
		default:
			return err
		}
	}
	select {
	case <-g.signal:
		return g.refusal()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maxLooked bounds how many futures are looked at for one that is not over.
const maxLooked = 1000

// firstOpen returns the first future that is not known to be over, the zero id if the first thousand are.
func firstOpen(fs []*Future) ID {
	for _, f := range fs[:min(len(fs), maxLooked)] {
		if f.client.registry.settledOf(f) == nil {
			return f.id
		}
	}
	return ID{}
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
			// Without a listener, Close has been called and every entry has ended.
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
