package futures

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
	"github.com/futura-run/futura/internal/clock"
)

// maxFetchers is the maximum number of ends that are read from the store at a
// time.
const maxFetchers = 16

// How long a read waits for workers that can't be reached, doubled each time.
const (
	unreachableWait     = 50 * time.Millisecond
	mostUnreachableWait = 2 * time.Second
)

// fetcher reads the ends that notices don't carry, because they are large or
// may be out of date. Without goroutines it reads in the caller.
type fetcher struct {
	client *Client

	mu      sync.Mutex
	queue   []ID
	running int
}

func (q *fetcher) add(ids []ID) {
	if len(ids) == 0 {
		return
	}
	q.mu.Lock()
	q.queue = append(q.queue, ids...)
	start := min(maxFetchers-q.running, len(q.queue))
	if q.client.manual() {
		start = 1
	}
	q.running += start
	q.mu.Unlock()
	if q.client.manual() {
		q.run()
		return
	}
	for range start {
		q.client.spawn(q.run)
	}
}

func (q *fetcher) run() {
	for {
		q.mu.Lock()
		if len(q.queue) == 0 || q.client.base.Err() != nil {
			q.running--
			q.mu.Unlock()
			return
		}
		id := q.queue[0]
		q.queue = q.queue[1:]
		q.mu.Unlock()
		q.fetch(id)
	}
}

// fetch ends a future according to its records. If it is not over, because it
// was retried, or its result was lost, its next end is asked for.
func (q *fetcher) fetch(id ID) {
	c := q.client
	settled, over, err := c.read(c.base, id, c.registry.wantsValue(id))
	switch {
	case err == nil && over && !c.registry.end(id, settled):
		q.fetch(id) // the value is wanted by now
	case err == nil && over:
	case err == nil && c.base.Err() == nil:
		c.registry.want([]ID{id})
		c.listener.wake()
	case c.base.Err() != nil:
	case isMistake(err):
		c.registry.end(id, Settled{Err: err})
	default:
		c.options.Logger.Warn("futures: reading a result failed; retrying", "future", id, "error", err)
		c.registry.want([]ID{id})
	}
}

// read returns the outcome of a future, and whether it is over. Without value, one with a
// large result is unread.
func (c *Client) read(ctx context.Context, id ID, value bool) (s Settled, over bool, err error) {
	for wait := unreachableWait; ; wait = min(2*wait, mostUnreachableWait) {
		row, err := c.cluster.Get(ctx, id)
		if err != nil {
			return Settled{}, false, err
		}
		e := row.Ending()
		if !e.Over() {
			return Settled{}, false, nil
		}
		if !value && e.Failure == nil && !e.Whole() {
			return Settled{unread: true}, true, nil
		}
		switch err := results.Of(c.cluster).Load(ctx, &e); {
		case errors.Is(err, results.ErrLost):
			// It runs again, has failed, or has another result by now.
		case errors.Is(err, fdbmodel.ErrUnreachable) && !c.manual():
			// The worker comes back, or is declared dead.
			c.options.Logger.Warn("futures: a result can't be read; retrying", "future", id, "error", err)
			if err := clock.Wait(ctx, c.cluster.Clock(), c.cluster.Now().Add(wait)); err != nil {
				return Settled{}, false, err
			}
		case err != nil:
			return Settled{}, false, err
		default:
			return settled(&e, row.Spec.Function), true, nil
		}
	}
}

// settled is how a future of a function ended.
func settled(e *layout.Ending, function string) Settled {
	if f := e.Failure; f != nil {
		return Settled{Err: &FailedError{
			ID: e.ID, Function: function, Kind: f.Kind, Message: f.Message, Attempt: f.Attempt, Worker: f.Worker,
			ExitCode: f.ExitCode, Stdout: f.Stdout, Stderr: f.Stderr,
		}}
	}
	r := e.Result
	return Settled{Result: Result{
		Value: r.Value, Codec: r.Codec, ExitCode: r.ExitCode, Stderr: r.Stderr, Truncated: r.Truncated,
		Attempt: r.Attempt, Worker: r.Worker, RunTime: r.RunTime,
	}}
}
