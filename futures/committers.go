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
	// maxCommitters is the maximum number of concurrent transactions for Submits.
	maxCommitters = 16
	// maxShared is the maximum size of the arguments, in bytes, of a Submit that
	// shares a transaction: larger ones would hold up the others.
	maxShared = 16 << 10
)

// committers join concurrent Submits. A call that finds a free committer goes
// at once, in its caller's goroutine; the others wait for the next one and
// share it.
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
	if q.client.manual() || len(s.Args) > maxShared || len(s.Inputs) > layout.MaxInputsInSpec {
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
	detach(&s) // the transaction may go on when ctx has ended
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

// withdraw takes a call out of the queue and reports whether it was in it.
func (q *committers) withdraw(call *submitCall) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.queue, call)
	if at >= 0 {
		q.queue = slices.Delete(q.queue, at, at+1)
	}
	return at >= 0
}

// next hands the committer to the waiting calls, or frees it.
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

// run submits a batch. What is wrong with one of its futures does not fail the others: after a mistake, each
// call without an answer is submitted alone; if a lane is full, those that find no place there, after the others.
func (q *committers) run(calls []*submitCall) {
	subs := make([]fdbmodel.Submission, len(calls))
	for i := range calls {
		subs[i] = calls[i].submission
	}
	ctx := q.client.base
	made, err := q.client.commit(ctx, subs)
	for i := range made {
		q.answer(calls[i], made[i], nil)
	}
	for i, call := range calls {
		call.submission = subs[i] // with its id
	}
	calls = calls[len(made):]
	var full *fdbmodel.LaneFullError
	switch {
	case errors.As(err, &full):
		placed, refused := split(calls, full.IDs)
		if len(placed) > 0 {
			q.run(placed)
			q.run(refused)
			return
		}
	case isMistake(err):
		for _, call := range calls {
			future, err := q.submitOne(ctx, call.submission)
			q.answer(call, future, err)
		}
		return
	}
	for _, call := range calls {
		q.answer(call, nil, err)
	}
}

// split returns the calls of other futures than those with ids, and of those.
func split(calls []*submitCall, ids []ID) (others, those []*submitCall) {
	for _, call := range calls {
		if slices.Contains(ids, call.submission.ID) {
			those = append(those, call)
		} else {
			others = append(others, call)
		}
	}
	return others, those
}

func (q *committers) answer(call *submitCall, future *Future, err error) {
	if err != nil && q.client.base.Err() != nil {
		err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
	call.future, call.err = future, err
	close(call.done)
}

// close ends the waiting calls. Those in progress end with the client's
// context.
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

// isMistake reports whether the request caused err, and not the store: the same
// request will fail again, and nothing was changed.
func isMistake(err error) bool {
	return fdbmodel.IsMistake(err) || layout.IsUnreadable(err) || errors.Is(err, fdbmodel.ErrNotFound)
}
