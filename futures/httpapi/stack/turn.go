package stack

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// lightBytes is how much a request may move before it needs a turn.
	lightBytes = 256 << 10
	// turnWait is how long a request waits for its turn before it is refused.
	turnWait = 30 * time.Second
	// turnTime is how long a turn lasts while others wait for theirs.
	turnTime = 50 * time.Millisecond
)

// turns bound the requests that compute on many bytes at a time: all, and those of
// one client. A request has no turn while it reads from its client or writes to it,
// nor while it waits for memory or for a future.
type turns chan struct{}

// turn is that of one request.
type turn struct {
	mu    sync.Mutex
	moved int64
	taken bool
	since time.Time
}

// work counts bytes that the request is about to compute on, or has. Where they
// are many it waits for the request's turn.
func (q *request) work(ctx context.Context, n int64) error {
	t := &q.turn
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.moved += n; t.moved < lightBytes || q.client == nil || q.streams {
		return nil
	}
	if t.taken && time.Since(t.since) < turnTime {
		return nil
	}
	q.endTurn()
	ctx, cancel := context.WithTimeout(ctx, turnWait)
	defer cancel()
	q.bound.hold()
	defer q.bound.resume()
	mine, all := q.client.turns, q.memory.turns
	select {
	case mine <- struct{}{}:
	case <-ctx.Done():
		return q.noTurn(ctx)
	}
	select {
	case all <- struct{}{}:
	case <-ctx.Done():
		<-mine
		return q.noTurn(ctx)
	}
	t.taken, t.since = true, time.Now()
	return nil
}

// pause gives back the request's turn until it moves more bytes.
func (q *request) pause() {
	q.turn.mu.Lock()
	defer q.turn.mu.Unlock()
	q.endTurn()
}

func (q *request) endTurn() {
	if q.turn.taken {
		q.turn.taken = false
		<-q.memory.turns
		<-q.client.turns
	}
}

func (q *request) noTurn(ctx context.Context) error {
	if err := context.Cause(ctx); err != context.DeadlineExceeded {
		return err
	}
	p := NewProblem(http.StatusTooManyRequests, "busy", nil,
		"too many large requests at a time: after %v it was not the turn of this one", turnWait)
	return p.later()
}

// Work counts n bytes that a request is about to compute on. Where it has many it
// waits for its turn, up to half a minute, and returns a problem if that does not
// come. The bytes of bodies and answers are counted without it. A context that
// belongs to no request has no turns.
func Work(ctx context.Context, n int64) error {
	if q := requestOf(ctx); q != nil {
		return q.work(ctx, n)
	}
	return nil
}

// Yield lets other large requests compute until this one moves more bytes. Call it
// before a request waits for something else.
func Yield(ctx context.Context) {
	if q := requestOf(ctx); q != nil {
		q.pause()
	}
}
