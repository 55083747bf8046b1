package futures

import (
	"context"
	"time"
)

// followEvery is how often Follow looks at a future.
const followEvery = time.Second

// Progress is how far a function says that it is.
type Progress struct {
	Done int64
	// Total is 0 if it is unknown.
	Total int64
	Text  string
	At    time.Time
}

// Attempt is an attempt that has ended.
type Attempt struct {
	Number int
	Worker WorkerID
	// StartedAt is the zero time if its worker did not live to tell.
	StartedAt time.Time `json:",omitzero"`
	EndedAt   time.Time
	// Kind and Message say why it failed; Kind is empty for one with a result.
	Kind    FailureKind
	Message string
}

// seenState is what Follow compares.
type seenState struct {
	state     State
	attempt   int
	worker    WorkerID
	cancelled bool
	progress  Progress
}

func seenOf(v *View) seenState {
	s := seenState{state: v.State, attempt: v.Attempt, worker: v.Worker, cancelled: !v.CancelAsked.IsZero()}
	if v.Progress != nil {
		s.progress = *v.Progress
	}
	return s
}

// Follow calls seen with a view of a future: at once, whenever its state, its attempt
// or its progress has changed, and at its end. Then it returns nil. It looks once a
// second, with one read, so several changes in between are one; it hears of the end
// at once. It returns the error of seen, ErrNotFound if the future does not exist or
// has been removed, ErrClosed once the client is closed, and ctx's error when ctx ends.
func (c *Client) Follow(ctx context.Context, id ID, seen func(View) error) error {
	fs := []*Future{c.Future(id)}
	g := newGroup(1, false)
	g.light = true
	waiters := c.join(fs, g)
	defer c.leave(fs, waiters)
	clk := c.cluster.Clock()
	for last, first := (seenState{}), true; ; first = false {
		v, err := c.Get(ctx, id)
		if err != nil {
			return err
		}
		if now := seenOf(&v); first || now != last {
			last = now
			if err := seen(v); err != nil {
				return err
			}
		}
		if v.State.Terminal() {
			return nil
		}
		if o := c.registry.settledOf(fs[0]); o != nil && o.abandoned {
			return o.Err
		}
		waiting, cancel := context.WithCancel(ctx)
		stop := clk.AfterFunc(clk.Now().Add(followEvery), cancel)
		err = c.wait(waiting, fs, g)
		stop()
		ended := waiting.Err() != nil
		cancel()
		if err != nil && (!ended || ctx.Err() != nil) {
			return err
		}
	}
}
