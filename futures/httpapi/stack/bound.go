package stack

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

const (
	// StoreTime is how long a request waits for the store, unless Limits say otherwise. What it waits
	// for its client, for its turn, or for a future does not count, and the time begins anew after it.
	StoreTime = 30 * time.Second
	// Patience is the key in the Metadata of an operation of how many times Limits.StoreTime its
	// requests wait for the store, an int. Defaults to 1.
	Patience = "patience"
	// Large is the patience of what changes or reads many records, or takes a large value.
	Large = 10
	// Endless is the patience of what has bounds of its own. Streams have it.
	Endless = -1
)

// patienceOf is the patience of an operation.
func patienceOf(op *huma.Operation, stream bool) int {
	given, _ := op.Metadata[Patience].(int)
	if stream {
		return Endless
	}
	return cmp.Or(given, 1)
}

// bound ends the context of a request that waits too long for the store. The methods of nil do nothing.
type bound struct {
	after  time.Duration
	cancel context.CancelFunc

	mu    sync.Mutex
	timer *time.Timer
	by    time.Time
	holds int // what the request waits for besides the store
	late  bool
	over  bool
}

// bind bounds how long a request waits for the store. end is called once it is answered.
func (q *request) bind(r *http.Request, patience int) (bounded *http.Request, end func()) {
	if patience < 0 {
		return r, func() {}
	}
	ctx, cancel := context.WithCancel(r.Context())
	b := &bound{after: time.Duration(patience) * q.stack.options.Limits.StoreTime, cancel: cancel}
	q.bound = b
	b.by = time.Now().Add(b.after)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = time.AfterFunc(b.after, b.fire)
	return r.WithContext(ctx), b.end
}

func (b *bound) fire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	// A call that was under way when the timer was set anew comes too early.
	if b.holds == 0 && !b.over && !time.Now().Before(b.by) {
		b.late = true
		b.cancel()
	}
}

func (b *bound) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	b.timer.Stop()
	b.cancel()
}

// hold has the bound wait while the request waits for something else than the store, until resume.
func (b *bound) hold() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holds++
	b.timer.Stop()
}

func (b *bound) resume() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.holds--; b.holds == 0 && !b.over {
		b.by = time.Now().Add(b.after)
		b.timer.Reset(b.after)
	}
}

func (b *bound) isLate() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.late
}

// Aside says that a request waits for something that has a bound of its own, until resume is called.
func Aside(ctx context.Context) (resume func()) {
	q := requestOf(ctx)
	if q == nil {
		return func() {}
	}
	q.bound.hold()
	return sync.OnceFunc(q.bound.resume)
}

// lateProblem is the problem of a request that the store has kept too long, and err for others.
func lateProblem(ctx context.Context, err error) error {
	q := requestOf(ctx)
	if q == nil || !q.bound.isLate() || !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return Unanswered(err, q.bound.after, q.changes)
}

// Unanswered is the problem of a request that the store has not answered for some time, 504 timeout. changes
// is set for one that may have changed something.
func Unanswered(cause error, after time.Duration, changes bool) *Problem {
	outcome := "try again"
	if changes {
		outcome = "what the request asks for may have been done, may be done yet, or may never be: look, or send it again, " +
			"which is safe with the same Idempotency-Key, key or id"
	}
	return NewProblem(http.StatusGatewayTimeout, "timeout", cause, "the store has not answered for %v: %s", after, outcome)
}
