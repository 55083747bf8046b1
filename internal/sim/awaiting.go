package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// meddle cancels, retries or discards something now and then.
func (c *clientProcess) meddle(ctx context.Context) error {
	w := c.world
	if w.healing || len(c.requests) == 0 || w.random.IntN(12) > 0 {
		return nil
	}
	r := c.requests[w.random.IntN(len(c.requests))]
	if w.random.IntN(3) == 0 {
		return c.reassignSome(ctx, r)
	}
	switch {
	case r.abandoned || r.discarded || r.missed:
		return nil
	case r.ended == nil:
		r.cancelled = true
		_, _, err := c.cluster.Cancel(ctx, r.submission.ID, "simulated")
		if errors.Is(err, fdbmodel.ErrNotFound) {
			return nil
		}
		return err
	case r.ended.State == layout.Failed && r.isPut():
		return c.retryPut(ctx, r)
	case r.ended.State == layout.Failed && w.random.IntN(3) > 0:
		return c.retry(ctx, r)
	case r.retried == 0:
		return c.discard(ctx, r)
	}
	return nil
}

// retry lets a future that has failed run again, unless it was removed.
func (c *clientProcess) retry(ctx context.Context, r *request) error {
	r.retried++
	c.world.report.Retried++
	r.earlier, r.ended = r.ended, nil
	err := c.cluster.Retry(ctx, r.submission.ID)
	if errors.Is(err, fdbmodel.ErrTransition) || errors.Is(err, fdbmodel.ErrNotFound) ||
		errors.Is(err, fdbmodel.ErrNotUnique) {
		return nil // it is not what it was, or must not run; a look at it will tell
	}
	return err
}

func (c *clientProcess) discard(ctx context.Context, r *request) error {
	id, pinned := r.submission.ID, c.world.isPinned(r)
	r.discarded = true // others may see it gone before this process does
	err := c.cluster.Discard(ctx, id)
	switch {
	case errors.Is(err, fdbmodel.ErrTransition):
		r.discarded = false
		return nil // it is an input of one that is not over
	case err == nil && pinned && c.world.isPinned(r):
		return fmt.Errorf("future %s is pinned and was discarded", id)
	case errors.Is(err, fdbmodel.ErrNotFound) && !c.world.expires:
		return fmt.Errorf("future %s ended and is gone: %w", id, err)
	}
	if r.gone = err == nil; r.gone {
		c.world.report.Discarded++
	}
	return ignoreMissing(err)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fdbmodel.ErrNotFound) {
		return nil
	}
	return err
}

// listen deals with all mail. What was taken from the mailbox does not come again.
func (c *clientProcess) listen(ctx context.Context) error {
	for {
		for len(c.inbox) > 0 {
			if err := c.take(ctx, c.inbox[0]); err != nil {
				return err
			}
			c.inbox = c.inbox[1:]
		}
		notices, watch, err := c.mailbox.Listen(ctx)
		if err != nil {
			return err
		}
		if watch != nil {
			watch.Cancel()
		}
		if c.inbox = notices; len(notices) == 0 && watch != nil {
			return c.mailbox.Acknowledge(ctx)
		}
	}
}

func (c *clientProcess) take(ctx context.Context, n layout.Notice) error {
	r := c.byID[n.ID]
	if r == nil {
		return fmt.Errorf("notice of future %s, which was never submitted", n.ID)
	}
	if r.again() || n.Result == nil && n.Exception == nil {
		row, err := c.cluster.Get(ctx, n.ID)
		switch {
		case errors.Is(err, fdbmodel.ErrNotFound) && (c.world.expires || r.discarded):
			if r.ended == nil {
				r.ended = &n
			}
			return nil
		case err != nil:
			return err
		case r.again() && !row.State().Terminal():
			return nil // that was before
		}
		n.State, n.Result, n.Exception = row.State(), row.Result, row.Exception
	}
	if r.ended != nil && !r.again() {
		return sameEnd(r.ended, &n)
	}
	r.read = r.read && r.ended != nil && sameEnd(r.ended, &n) == nil
	r.ended = &n
	delete(c.overdue, n.ID)
	return nil
}

// forgetEnds makes the client look again at what may have gone on since it ended: a
// retry may have committed late, or a reader may have found a result lost. Of those
// that are objects it wants about half.
func (c *clientProcess) forgetEnds() {
	for _, r := range c.requests {
		r.wanted = r.submission.Spec.AsObject && c.world.random.IntN(2) == 0
		if r.again() && !r.discarded && r.ended != nil {
			r.earlier, r.ended, r.read = r.ended, nil, false
		}
	}
}

// subscribeOpen asks for the end of all that is open, and submits again what no
// submit has acknowledged: the same id and content is the same future.
func (c *clientProcess) subscribeOpen(ctx context.Context) error {
	var ids []layout.ID
	for _, r := range c.requests {
		if r.open() {
			ids = append(ids, r.submission.ID)
		}
	}
	began := c.world.clock.Now() // the process may be stopped while it looks
	over, missing, err := c.mailbox.Subscribe(ctx, ids)
	if err != nil {
		return err
	}
	known := map[layout.ID]bool{}
	for i := range over {
		id := over[i].ID
		known[id] = true
		if c.entitled[id] && c.byID[id].retried == 0 {
			if c.overdue[id] {
				return fmt.Errorf("future %s ended as %v, and session %s was not told", id, over[i].State, c.session)
			}
			c.overdue[id] = true
			began = c.world.seen // what it is told has yet to come
			continue
		}
		if err := c.take(ctx, over[i]); err != nil {
			return err
		}
	}
	for _, id := range missing {
		known[id] = true
		if err := c.submitAgain(ctx, c.byID[id]); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if !known[id] {
			c.entitled[id] = true
		}
	}
	c.world.seen = began
	return nil
}

// unseen is how long the client has not looked at its futures.
func (w *world) unseen() time.Duration { return w.clock.Now().Sub(w.seen) }

// submitAgain submits what does not exist.
func (c *clientProcess) submitAgain(ctx context.Context, r *request) error {
	id := r.submission.ID
	switch {
	case r.earlier != nil && (c.world.expires || r.discarded):
		r.ended = r.earlier // it was removed before the retry, or before this look
		return nil
	case r.acknowledged && c.world.expires && (c.world.unseen() > soonExpired/2 || len(c.world.objects.results[id]) > 0):
		r.missed = true
		return nil
	case r.acknowledged:
		return fmt.Errorf("future %s was acknowledged and is gone", id)
	case r.isPut():
		return c.put(ctx, r)
	}
	r.submission.Spec.Session = c.session
	c.mayReplace(r)
	c.world.lanes.ask(id)
	_, err := c.cluster.Submit(ctx, []fdbmodel.Submission{r.submission})
	if errors.Is(err, fdbmodel.ErrNotUnique) {
		return c.refusable(r, err)
	}
	switch bad := errors.Is(err, layout.ErrBadSpec); {
	case bad && c.mayMiss(r):
		r.abandoned = true
		return nil
	case bad && c.awaitsPut(r):
		return nil
	}
	if err == nil {
		r.acknowledged, c.entitled[id] = true, true
		c.world.lanes.acknowledge(id)
		c.world.objects.beginAgain(id)
	}
	return err
}

func (c *clientProcess) open() int {
	n := 0
	for _, r := range c.requests {
		if r.open() || r.unread() {
			n++
		}
	}
	return n
}
