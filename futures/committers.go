package futures

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

const (
	// maxCommitters is how many transactions of concurrent Submits are under
	// way at most.
	maxCommitters = 16
	// maxShared is how many bytes of arguments a Submit may have, so that its
	// neighbours don't wait for them.
	maxShared = 16 << 10
)

// committers join concurrent Submits. A call that finds a committer free goes
// at once, in its caller's goroutine; the others wait together for the next one.
type committers struct {
	client *Client

	mu     sync.Mutex
	busy   int
	queue  []*submitCall
	closed bool
}

type submitCall struct {
	submission fdbmodel.Submission
	future     *Future
	err        error
	done       chan struct{}
}

func (q *committers) submit(ctx context.Context, s fdbmodel.Submission) (*Future, error) {
	if q.client.manual() || len(s.Args) > maxShared {
		return q.submitOne(ctx, s)
	}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil, ErrClosed
	}
	if q.busy < maxCommitters {
		q.busy++
		q.mu.Unlock()
		defer q.next()
		return q.submitOne(ctx, s)
	}
	call := &submitCall{submission: s, done: make(chan struct{})}
	q.queue = append(q.queue, call)
	q.mu.Unlock()
	select {
	case <-call.done:
		return call.future, call.err
	case <-ctx.Done():
		if q.withdraw(call) {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", kv.ErrUnknownResult, ctx.Err())
	}
}

func (q *committers) submitOne(ctx context.Context, s fdbmodel.Submission) (*Future, error) {
	made, err := q.client.commit(ctx, []fdbmodel.Submission{s})
	if err != nil {
		return nil, err
	}
	return made[0], nil
}

// withdraw takes a call out of the queue and tells whether it was there.
func (q *committers) withdraw(call *submitCall) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.queue, call)
	if at >= 0 {
		q.queue = slices.Delete(q.queue, at, at+1)
	}
	return at >= 0
}

// next hands the committer to those who wait, or frees it.
func (q *committers) next() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		q.busy--
		return
	}
	n := min(len(q.queue), layout.MaxSubmit)
	calls := slices.Clone(q.queue[:n])
	q.queue = slices.Delete(q.queue, 0, n)
	q.client.wg.Go(func() {
		defer q.next()
		q.run(calls)
	})
}

// run submits a batch. A mistake in one of its futures is not its neighbours':
// each of those without an answer is submitted alone then.
func (q *committers) run(calls []*submitCall) {
	subs := make([]fdbmodel.Submission, len(calls))
	for i := range calls {
		subs[i] = calls[i].submission
	}
	ctx := q.client.base
	made, err := q.client.commit(ctx, subs)
	for i, call := range calls {
		switch {
		case i < len(made):
			call.future = made[i]
		case isMistake(err):
			call.future, call.err = q.submitOne(ctx, subs[i])
		default:
			call.err = err
		}
		if call.err != nil && ctx.Err() != nil {
			call.err = fmt.Errorf("%w: %w", ErrClosed, call.err)
		}
		close(call.done)
	}
}

// close ends the calls that wait. Those under way end with the client's context.
func (q *committers) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, call := range q.queue {
		call.err = ErrClosed
		close(call.done)
	}
	q.queue = nil
}

// isMistake tells whether err comes from what was asked for, not from the
// store: the same will fail again, and nothing was changed.
func isMistake(err error) bool {
	return fdbmodel.IsMistake(err) || layout.IsUnreadable(err) || errors.Is(err, fdbmodel.ErrNotFound)
}
