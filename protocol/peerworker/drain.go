package peerworker

import (
	"context"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/signal"
	"github.com/futura-run/futura/protocol"
)

// deliverTime is how long results are delivered after the last function has ended.
const deliverTime = 5 * time.Second

// drain gives back what has not begun, lets the rest end, and delivers it.
func (w *Worker) drain(ctx context.Context) error {
	w.stopping.Store(true)
	w.giveBack(ctx, true)
	err := w.node.drain()
	w.giveBack(ctx, false)
	delivering, cancel := context.WithTimeout(ctx, deliverTime)
	defer cancel()
	w.awaitDelivery(delivering)
	return err
}

// giveBack tells heads what will not be run: items that have not begun, or at last
// all that have not ended. What belongs to a head that can't be told stays in the
// store.
func (w *Worker) giveBack(ctx context.Context, unbegun bool) {
	for _, l := range w.liveLinks() {
		m := &protocol.Goodbye{}
		for _, c := range w.chunksOf(l.head) {
			indexes, err := c.takeBack(ctx, unbegun)
			if err != nil {
				w.log.Warn("items can't be given back", "chunk", c.name.chunk, c.named(nil), "error", err)
			}
			if len(indexes) > 0 && c.order == nil {
				m.Returned = append(m.Returned, protocol.Returned{ChunkID: c.name.chunk, Indexes: indexes})
			}
		}
		if len(m.Returned) == 0 && !unbegun {
			continue
		}
		if _, err := w.call(ctx, l.head, m); err != nil {
			w.log.Warn("the head has not heard that this worker stops", "head", l.head, "error", err)
		}
	}
}

// takeBack has items not run here, and returns which.
func (c *chunk) takeBack(ctx context.Context, unbegun bool) (taken []int, err error) {
	if !unbegun {
		// What has ended in the last moment counts.
		if err := c.worker.collect(ctx, true); err != nil {
			return nil, err
		}
	}
	indexes := c.openItems()
	ids := make([]layout.ID, len(indexes))
	for i, index := range indexes {
		ids[i] = c.ids[index]
	}
	switch {
	case unbegun && c.isDirect():
		kept := slices.Clone(indexes[:0])
		for _, i := range c.worker.runner.withdraw(c, ids) {
			kept = append(kept, indexes[i])
		}
		indexes = kept
	case unbegun:
		var outcomes []fdbmodel.Outcome
		outcomes, err = c.worker.node.cluster.Unassign(ctx, c.worker.node.worker.ID(), ids)
		kept := slices.Clone(indexes[:0])
		for i, o := range outcomes {
			if o == fdbmodel.Applied {
				kept = append(kept, indexes[i])
			}
		}
		indexes = kept
	}
	if len(indexes) == 0 {
		return nil, err
	}
	c.settleReturned(ctx, indexes)
	return indexes, err
}

// settleReturned ends items that go back to the head.
func (c *chunk) settleReturned(ctx context.Context, indexes []int) {
	ids := make([]layout.ID, len(indexes))
	for i, index := range indexes {
		ids[i] = c.ids[index]
	}
	if c.isDirect() {
		c.worker.runner.forget(c, ids)
	} else if _, err := c.worker.node.cluster.CancelMany(ctx, ids, "the worker stops"); err != nil {
		c.worker.log.Warn("items could not be cancelled", "chunk", c.name.chunk, c.named(indexes), "error", err)
	}
	c.mu.Lock()
	for _, i := range indexes {
		c.settleItem(i, 0)
	}
	c.mu.Unlock()
	signal.Send(c.worker.news)
	signal.Send(c.ring)
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
	for _, l := range w.liveLinks() {
		for _, c := range w.chunksOf(l.head) {
			if !l.awaitGone(ctx, c) {
				w.log.Warn("the worker stops with results that the head has not taken", "head", l.head, "chunk", c.name.chunk)
			}
		}
	}
}

// awaitGone waits until a chunk is forgotten, or the head is lost.
func (l *link) awaitGone(ctx context.Context, c *chunk) bool {
	for {
		l.mu.Lock()
		up, changed := l.up, l.changed
		l.mu.Unlock()
		if !up {
			return false
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
