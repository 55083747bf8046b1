package head

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/internal/clock"
)

func (h *Head) now() time.Time {
	if s := h.options.Seam; s != nil {
		return s.Now()
	}
	return time.Now()
}

func (h *Head) newID() string {
	if s := h.options.Seam; s != nil {
		return uuid.Must(uuid.NewRandomFromReader(s.Random)).String()
	}
	return uuid.NewString()
}

// driveByStep is drive for a head that runs in steps. It is called under mu.
func (h *Head) driveByStep(id string, items []batch.Item, found bool) {
	d := h.drivers[id]
	if d == nil {
		d = newDriver(h, id)
		d.fresh, d.found = items, found
		h.drivers[id] = d
	}
	d.at = time.Time{}
}

// step is one step of a head that runs in steps; see seam.Head.
func (h *Head) step(ctx context.Context, now time.Time) (next time.Time, err error) {
	if _, ok := h.options.Store.(batch.Recorder); ok {
		return now, errors.New("head: Step is for stores that run their items")
	}
	if !now.Before(h.resumeAt) {
		if err := h.resume(ctx); err != nil {
			return now.Add(h.options.Look), err
		}
		h.resumeAt = now.Add(h.options.RequeueInterval)
	}
	next = h.resumeAt
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(h.drivers)) {
		d := h.drivers[id]
		if now.Before(d.at) {
			next = clock.Earlier(next, d.at)
			continue
		}
		at, over, err := d.step(ctx)
		if errors.Is(err, batch.ErrNotFound) {
			err = nil // a worker has gone, or the next step finds that the batch has
		}
		if over {
			delete(h.drivers, id)
			d.holds(nil)
			continue
		}
		d.at, errs = at, append(errs, err)
		next = clock.Earlier(next, at)
	}
	return next, errors.Join(errs...)
}
