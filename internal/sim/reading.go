package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
)

// readSome has the client read results that are objects: some while there are
// faults, and all that it wants when there are none.
func (c *clientProcess) readSome(ctx context.Context) error {
	w := c.world
	if n := len(c.requests); !w.healing {
		for range min(n, 4) {
			if err := w.read(ctx, c.process, c.requests[w.random.IntN(n)]); err != nil {
				return err
			}
		}
		return nil
	}
	for _, r := range c.requests {
		if r.unread() {
			if err := w.read(ctx, c.process, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// unread reports whether the client still wants the result.
func (r *request) unread() bool {
	return r.wanted && !r.read && !r.missed && !r.discarded && r.ended != nil && r.ended.State == layout.Realized
}

// read reads a result from a process. Where it was lost, the client waits for the end
// again.
func (w *world) read(ctx context.Context, p *process, r *request) error {
	if !r.submission.Spec.AsObject || r.missed || r.discarded || r.ended == nil || r.ended.State != layout.Realized {
		return nil
	}
	id, result := r.submission.ID, r.ended.Result
	if result == nil {
		r.read = true // it was removed before the client could see it
		return nil
	}
	p.reading = runKey{id, result.Token}
	value, err := results.Of(p.cluster).Value(ctx, id, result)
	p.reading = runKey{}
	switch {
	case r.discarded && (errors.Is(err, results.ErrLost) || errors.Is(err, fdbmodel.ErrNotFound)):
		return nil // it was discarded while this process was stopped
	case errors.Is(err, results.ErrLost):
		r.earlier, r.ended, r.read = r.ended, nil, false
		w.report.Missing++
		return w.checkGone(ctx, r, result.Token)
	case errors.Is(err, fdbmodel.ErrUnreachable):
		return nil
	case w.expires && (errors.Is(err, fdbmodel.ErrNotFound) || errors.Is(err, layout.ErrBadRecord)):
		r.read = true
		return nil
	case err != nil:
		return err
	}
	r.read = true
	w.report.Read++
	w.moveSome(ctx, r)
	return w.checkContent(r, result, value)
}

// checkContent compares a value with the result that it was read as.
func (w *world) checkContent(r *request, result *layout.Result, value []byte) error {
	w.objects.saw(r.submission.ID, result.Token)
	want := r.encoded(r.content(w.objects.runs[runKey{r.submission.ID, result.Token}]))
	if !bytes.Equal(value, want) {
		return fmt.Errorf("future %s has the wrong result %.100q, not %.100q", r.submission.ID, value, want)
	}
	return nil
}

// lookAgain makes the client look at what may have gone on since it ended.
func (c *clientProcess) lookAgain(ctx context.Context) error {
	for _, r := range c.requests {
		if !r.again() || r.abandoned || r.missed || r.gone || r.ended == nil {
			continue
		}
		row, err := c.cluster.Get(ctx, r.submission.ID)
		switch {
		case errors.Is(err, fdbmodel.ErrNotFound):
		case err != nil:
			return err
		case !row.State().Terminal():
			r.earlier, r.ended, r.read = r.ended, nil, false
		default:
			end := layout.Notice{ID: row.ID, State: row.State(), Result: row.Result, Exception: row.Exception}
			r.read = r.read && sameEnd(r.ended, &end) == nil
			r.ended = &end
		}
	}
	return nil
}
