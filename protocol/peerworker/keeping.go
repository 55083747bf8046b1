package peerworker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/signal"
)

const (
	// gather is how long after an item has ended others are waited for.
	gather = 2 * time.Millisecond
	// lookAgain is how often the loop looks without a signal.
	lookAgain = time.Second
	// discardItems and discardBytes are how much of a chunk its head has acknowledged
	// before that is removed while the chunk goes on.
	discardItems = 500
	discardBytes = 16 << 20
)

// keepLoop keeps the journal, gives items back that heads want back, and forgets chunks that
// are over, until ctx ends.
func (w *Worker) keepLoop(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.journal.flush(ctx)
		if err == nil {
			err = w.journal.probe(ctx)
		}
		w.giveUpAsked()
		w.dropAway()
		w.modules.cut.tidy()
		if err == nil {
			err = w.tidy(ctx)
		}
		if err != nil && ctx.Err() == nil {
			w.journal.fail(err)
			if w.journal == nil || errors.Is(err, kv.ErrClosed) || errors.Is(err, kv.ErrStoreFailed) {
				w.fail(err)
				return
			}
		}
		news := w.news
		if w.journal.isFailing() {
			news = nil // it is tried again in a while
		}
		timer := time.NewTimer(lookAgain)
		select {
		case <-news:
			_ = clock.Sleep(ctx, clock.Real{}, gather) // its error is ctx's
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// tidy removes the items that heads have the results of, and chunks that are over.
func (w *Worker) tidy(ctx context.Context) error {
	var over, partly []*chunk
	crowded := w.isCrowded()
	for _, c := range w.all() {
		c.mu.Lock()
		if c.unsent == 0 && c.flights == 0 && c.begun {
			over = append(over, c)
		} else if len(c.done) >= discardItems || c.doneBytes >= discardBytes || crowded && c.doneBytes > 0 {
			partly = append(partly, c)
		}
		c.mu.Unlock()
	}
	for _, c := range partly {
		if err := w.discard(ctx, c); err != nil {
			return err
		}
	}
	if len(over) > 0 {
		// A chunk that has taken an item over is among all before the item has left.
		needed := w.neededChunks()
		over = slices.DeleteFunc(over, func(c *chunk) bool { return needed[c] })
	}
	err := w.forget(ctx, over)
	w.fullHeads()
	return err
}

// neededChunks are those of which new chunks have taken items over that the journal has not yet, with their
// ends: until then it has the items in the old ones.
func (w *Worker) neededChunks() map[*chunk]bool {
	needed, kept := map[*chunk]bool{}, map[*chunk]bool{}
	all := w.all()
	for _, c := range all {
		c.mu.Lock()
		kept[c] = c.kept
		c.mu.Unlock()
	}
	w.journal.eachEnd(func(e keptEnd) { kept[e.chunk] = false }) // those that had ended came before kept
	for _, c := range all {
		if kept[c] {
			continue
		}
		for _, p := range c.moved {
			needed[p.chunk] = true
		}
	}
	return needed
}

// keep says that the journal has the order of a chunk, if it keeps such.
func (c *chunk) keep() {
	c.mu.Lock()
	c.kept = true
	c.mu.Unlock()
	signal.Send(c.worker.news)
}

// discard removes settled items of a chunk that goes on.
func (w *Worker) discard(ctx context.Context, c *chunk) error {
	c.mu.Lock()
	done, size := c.done, min(c.doneBytes, c.bytes)
	c.done, c.doneBytes = nil, 0
	c.bytes -= size
	c.mu.Unlock()
	if err := w.journal.settle(ctx, c.places(done)); err != nil {
		c.mu.Lock()
		c.done, c.doneBytes, c.bytes = append(done, c.done...), c.doneBytes+size, c.bytes+size
		c.mu.Unlock()
		return err
	}
	w.runner.forget(c, c.idsOf(done))
	c.charge(-size)
	w.runner.news() // its head may be full no longer
	return nil
}

// forget removes chunks that are over.
func (w *Worker) forget(ctx context.Context, chunks []*chunk) error {
	if len(chunks) == 0 {
		return nil
	}
	if err := w.journal.forget(ctx, chunks); err != nil {
		return err
	}
	for _, c := range chunks {
		w.dropChunk(c)
	}
	w.runner.news()
	return nil
}

// dropChunk removes a chunk from memory.
func (w *Worker) dropChunk(c *chunk) {
	c.mu.Lock()
	done := c.done
	c.mu.Unlock()
	w.runner.forget(c, c.idsOf(done))
	w.remove(c)
}

// places are those of some items of a chunk.
func (c *chunk) places(indexes []int) []place {
	places := make([]place, len(indexes))
	for n, i := range indexes {
		places[n] = place{c, i}
	}
	return places
}

// idsOf are the ids here of some items, without those that there are none of.
func (c *chunk) idsOf(indexes []int) []layout.ID {
	ids := make([]layout.ID, 0, len(indexes))
	for _, i := range indexes {
		if i >= 0 && i < len(c.ids) {
			ids = append(ids, c.ids[i])
		}
	}
	return ids
}
