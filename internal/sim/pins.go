package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
)

// kept and open are how holders of pins begin: of those that last, and of those that
// end with their session.
const (
	kept = "kept-"
	open = "open-"
)

// pins are what a client knows of the pins of a future.
type pins struct {
	// held are those that were made, with their sessions, and unsure those of which it
	// is not known whether they were made or ended.
	held   map[string]layout.SessionID
	unsure map[string]bool
}

// isPinned reports whether a future must not be removed.
func (w *world) isPinned(r *request) bool {
	for _, session := range r.pins.held {
		if session == "" || session == w.client.session && !w.client.process.dead {
			return true
		}
	}
	return false
}

// pinSome pins or unpins something now and then.
func (c *clientProcess) pinSome(ctx context.Context) error {
	w := c.world
	if w.healing || len(c.requests) == 0 || w.random.IntN(8) > 0 {
		return nil
	}
	r := c.requests[w.random.IntN(len(c.requests))]
	if !r.acknowledged || r.missed || r.discarded {
		return nil
	}
	holder, session := fmt.Sprintf("%s%d", kept, w.random.IntN(2)), layout.SessionID("")
	if w.random.IntN(3) == 0 {
		holder, session = open+"0", c.session
	}
	if len(r.pins.held) > 0 && w.random.IntN(2) == 0 {
		return c.unpin(ctx, r, holder)
	}
	err := c.asPinned(r, holder, func() error { return results.Of(c.cluster).Pin(ctx, r.submission.ID, holder, session) })
	if err == nil && !r.pins.unsure[holder] {
		r.pins.held[holder] = session
		w.report.Pinned++
	}
	return err
}

func (c *clientProcess) unpin(ctx context.Context, r *request, holder string) error {
	delete(r.pins.held, holder)
	return c.asPinned(r, holder, func() error { return results.Of(c.cluster).Unpin(ctx, r.submission.ID, holder) })
}

// asPinned changes a pin, of which nothing is known until that is done.
func (c *clientProcess) asPinned(r *request, holder string, change func() error) error {
	if r.pins.held == nil {
		r.pins = pins{map[string]layout.SessionID{}, map[string]bool{}}
	}
	r.pins.unsure[holder] = true
	pinned := c.world.isPinned(r)
	err := change()
	switch {
	case errors.Is(err, fdbmodel.ErrNotFound) && pinned && c.world.isPinned(r):
		return fmt.Errorf("future %s is pinned and gone: %w", r.submission.ID, err)
	case errors.Is(err, fdbmodel.ErrNotFound):
		return nil
	case err == nil:
		delete(r.pins.unsure, holder)
	}
	return err
}

// checkKept requires that what is pinned exists.
func (w *world) checkKept(exists map[layout.ID]bool) error {
	for _, r := range w.client.requests {
		if w.isPinned(r) && !exists[r.submission.ID] {
			return fmt.Errorf("future %s is pinned and gone", r.submission.ID)
		}
	}
	return nil
}

// checkPins compares the pins that last with those that were asked for.
func (w *world) checkPins(ctx context.Context) error {
	for _, r := range w.client.requests {
		if len(r.pins.held) == 0 && len(r.pins.unsure) == 0 {
			continue
		}
		holders, err := results.Of(w.reader).Pins(ctx, r.submission.ID)
		switch {
		case errors.Is(err, fdbmodel.ErrNotFound) && !w.isPinned(r):
			continue
		case err != nil:
			return fmt.Errorf("pins of future %s: %w", r.submission.ID, err)
		}
		for _, holder := range []string{kept + "0", kept + "1", open + "0"} {
			session, held := r.pins.held[holder]
			if r.pins.unsure[holder] || strings.HasPrefix(holder, open) && session != w.client.session {
				continue
			}
			if has := slices.Contains(holders, holder); has != held {
				return fmt.Errorf("future %s has the pins %v, and %s: %t", r.submission.ID, holders, holder, held)
			}
		}
	}
	return nil
}

// Bounds of the time in which what nobody keeps is removed.
const (
	ageTime  = 15 * time.Minute
	ageSteps = 20 // between two looks
)

// age ends the client, whose pins end with it, and half of those that last, and waits
// until all is removed that nobody keeps and whose retention has passed. One worker is
// left.
func (w *world) age(ctx context.Context) error {
	c := w.client
	for _, r := range c.requests {
		for _, holder := range []string{kept + "0", kept + "1"} {
			if _, held := r.pins.held[holder]; r.pins.unsure[holder] || held && r.submission.ID[1]%2 == 0 {
				if err := c.unpin(ctx, r, holder); err != nil {
					return err
				}
			}
		}
	}
	c.process.die()
	c.pausedUntil = never
	for _, p := range w.heads {
		p.process.die()
	}
	w.heads = nil
	w.until = w.clock.Now().Add(ageTime)
	for {
		over, err := w.aged(ctx)
		if err != nil {
			return err
		}
		if over == nil {
			return w.sweep(ctx)
		}
		if !w.clock.Now().Before(w.until) {
			return fmt.Errorf("after %v: %w", ageTime, over)
		}
		for range ageSteps {
			if err := w.step(ctx); err != nil {
				return err
			}
		}
	}
}

// sweepTime is longer than it takes a worker to look at all that it holds.
const sweepTime = 25 * time.Second

// sweep lets the time pass for which workers hold what may be put, and then has them
// drop what nothing refers to.
func (w *world) sweep(ctx context.Context) error {
	w.clock.Advance(putGrace)
	for w.until = w.clock.Now().Add(sweepTime); w.clock.Now().Before(w.until); {
		if err := w.step(ctx); err != nil {
			return err
		}
	}
	return w.checkStored(ctx)
}

// aged returns an error over for a future that is still there and that nobody keeps.
func (w *world) aged(ctx context.Context) (over, err error) {
	var ids []layout.ID
	for _, r := range w.client.requests {
		ids = append(ids, r.submission.ID)
	}
	exists := map[layout.ID]bool{}
	for part := range slices.Chunk(ids, readTogether) {
		rows, err := w.reader.GetMany(ctx, part)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			exists[rows[i].ID] = true
		}
	}
	if err := w.checkKept(exists); err != nil {
		return nil, err
	}
	used := map[layout.ID]bool{}
	for _, r := range slices.Backward(w.client.requests) {
		id := r.submission.ID
		if !exists[id] {
			continue
		}
		if !used[id] && !w.isPinned(r) {
			return fmt.Errorf("nobody keeps future %s, and it is still there", id), nil
		}
		for _, input := range r.submission.Inputs {
			used[input] = true
		}
	}
	w.report.Aged += len(ids) - len(exists)
	return nil, nil
}
