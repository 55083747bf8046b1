package peerworker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/futura-run/futura/internal/signal"
	"github.com/futura-run/futura/protocol"
)

// deliverTime is how long results are delivered after the last function has ended.
const deliverTime = 5 * time.Second

// drain gives back what has not begun, lets the rest end, and delivers it.
func (w *Worker) drain(ctx context.Context) error {
	w.stopping.Store(true)
	told := w.giveBack(ctx, true)
	// What has ended in the last moment counts.
	err := errors.Join(w.node.drain(), w.journal.flush(ctx))
	told()
	delivering, cancel := context.WithTimeout(ctx, deliverTime)
	defer cancel()
	w.giveBack(delivering, false)()
	w.awaitDelivery(delivering)
	return err
}

// giveBack tells heads what will not be run: items that have not begun, or at last
// all that have not ended. What belongs to a head that can't be told stays in the
// store. Heads of b7s learn it from their replies. It returns what waits until heads have heard it,
// for deliverTime at most: one that does not answer holds up neither others nor what runs.
func (w *Worker) giveBack(ctx context.Context, unbegun bool) (wait func()) {
	for _, c := range w.all() {
		if c.order != nil {
			c.takeBack(ctx, unbegun)
		}
	}
	telling, cancel := context.WithTimeout(ctx, deliverTime)
	var told sync.WaitGroup
	for _, l := range w.liveLinks() {
		var returned []protocol.Returned
		for _, c := range w.chunksOf(l.head) {
			if c.order != nil {
				continue
			}
			if indexes := c.takeBack(ctx, unbegun); len(indexes) > 0 {
				returned = append(returned, protocol.Returned{ChunkID: c.name.chunk, Indexes: indexes})
			}
		}
		if len(returned) == 0 && !unbegun {
			continue
		}
		told.Go(func() {
			for _, m := range goodbyes(returned) {
				if _, err := w.call(telling, l.head, m); err != nil {
					w.log.Warn("the head has not heard that this worker stops", "head", l.head, "error", err)
					return
				}
			}
		})
	}
	return func() {
		told.Wait()
		cancel()
	}
}

// goodbyes are the messages that give items back, one at least.
func goodbyes(returned []protocol.Returned) (all []*protocol.Goodbye) {
	for {
		n := min(len(returned), protocol.MaxNames)
		all = append(all, &protocol.Goodbye{Returned: returned[:n]})
		if returned = returned[n:]; len(returned) == 0 {
			return all
		}
	}
}

// takeBack has items not run here, and returns which.
func (c *chunk) takeBack(ctx context.Context, unbegun bool) []int {
	w := c.worker
	indexes := c.openItems()
	if unbegun {
		indexes = w.runner.withdraw(c, indexes)
	} else {
		w.runner.forget(c, c.idsOf(indexes))
	}
	if len(indexes) == 0 {
		return nil
	}
	if err := w.journal.settle(ctx, c.places(indexes)); err != nil {
		w.log.Warn("items that are given back are not forgotten", "chunk", c.name.chunk, c.named(indexes), "error", err)
		w.journal.fail(err)
	}
	c.mu.Lock()
	for _, i := range indexes {
		c.settleItem(i, 0)
	}
	c.mu.Unlock()
	signal.Send(w.news)
	signal.Send(c.ring)
	return indexes
}

// liveLinks returns the links whose heads can be told something.
func (w *Worker) liveLinks() (live []*link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.links {
		if l.isUp() {
			live = append(live, l)
		}
	}
	return live
}

// awaitDelivery returns once no chunk is left whose head is there, or when ctx ends.
func (w *Worker) awaitDelivery(ctx context.Context) {
	for _, c := range w.all() {
		w.mu.Lock()
		l := w.links[c.name.head]
		w.mu.Unlock()
		if l != nil && l.reaches(c) && !l.awaitGone(ctx, c) {
			w.log.Warn("the worker stops with results that the head has not taken", "head", l.head, "chunk", c.name.chunk)
		}
	}
}

// reaches reports whether the head can be sent results of a chunk. One of b7s's is not greeted.
func (l *link) reaches(c *chunk) bool { return l.isUp() || c.order != nil && l.isConnected() }

// awaitGone waits until a chunk is forgotten, or the head is lost.
func (l *link) awaitGone(ctx context.Context, c *chunk) bool {
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		if !l.reaches(c) {
			return false
		}
		if l.worker.journal.isFailing() && c.isOver() {
			return true // which can't be forgotten
		}
		select {
		case <-c.gone:
			return true
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func (l *link) isConnected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peer.Connected
}

func (l *link) isUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up
}
