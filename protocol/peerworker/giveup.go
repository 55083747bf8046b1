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

// wanted are items that a head wants back.
type wanted struct {
	indexes []int
	due     time.Time // when they are looked at
}

// giveUpLater has items be given back that a head wants to give to others, if they have not
// begun. The answer says that the chunk is known; what is given back is among its outcomes.
func (w *Worker) giveUpLater(head string, m *protocol.TakeBack) *protocol.Ack {
	c := w.chunk(chunkName{head, m.ChunkID})
	if c == nil {
		return &protocol.Ack{Code: protocol.CodeNotFound, ChunkID: m.ChunkID, Message: "no such chunk"}
	}
	indexes := c.openItems()
	if len(m.Indexes) > 0 {
		wanted := make(map[int]bool, len(m.Indexes))
		for _, i := range m.Indexes {
			wanted[i] = true
		}
		indexes = slices.DeleteFunc(indexes, func(i int) bool { return !wanted[i] })
	}
	w.mu.Lock()
	if w.chunks[c.name] == c {
		w.asked[c] = wanted{indexes: indexes} // a head names all that it wants of late
	}
	w.mu.Unlock()
	signal.Send(w.news)
	return &protocol.Ack{Code: protocol.CodeOK, ChunkID: m.ChunkID}
}

// giveUpAgain is after which time the worker is asked again for items that it had claimed and
// not begun: it gives those back to its store after a moment.
const giveUpAgain = 100 * time.Millisecond

// giveUpAsked gives back what heads want back. Only who assigns futures calls it: one that
// was taken from the worker must not be assigned to it again before it is gone.
func (w *Worker) giveUpAsked(ctx context.Context) {
	now := w.options.clock.Now()
	w.mu.Lock()
	asked := map[*chunk][]int{}
	for c, a := range w.asked {
		if !now.Before(a.due) {
			asked[c] = a.indexes
			delete(w.asked, c)
		}
	}
	w.mu.Unlock()
	for c, indexes := range asked {
		left, err := c.giveUp(ctx, indexes)
		if err != nil && ctx.Err() == nil {
			w.log.Warn("items can't be given back", "chunk", c.name.chunk, c.named(indexes), "error", err)
		}
		w.mu.Lock()
		if _, newer := w.asked[c]; !newer && len(left) > 0 && w.chunks[c.name] == c {
			w.asked[c] = wanted{left, now.Add(giveUpAgain)}
		}
		w.mu.Unlock()
	}
}

// giveUp gives back those items that have not begun, and returns those that the worker has
// claimed and not begun. After an unknown commit nothing is given back: what was taken from
// the worker then is assigned to it again.
func (c *chunk) giveUp(ctx context.Context, indexes []int) (left []int, err error) {
	w := c.worker
	if w.stopping.Load() {
		return nil, nil // which gives back all
	}
	var places, at []int
	var ids []layout.ID
	c.mu.Lock()
	for _, i := range indexes {
		if _, runs := c.running[i]; c.begun && !c.dropped && !runs && c.states[i] == itemOpen {
			places, ids = append(places, i), append(ids, c.ids[i])
		}
	}
	c.mu.Unlock()
	if c.isDirect() {
		at = w.runner.withdraw(c, ids)
	} else {
		at, err = c.withdraw(ctx, ids)
	}
	w.counts.givenUp.Add(int64(len(at)))
	for n, i := range places {
		if len(at) > 0 && at[0] == n {
			at = at[1:]
			c.end(ended{index: i, outcome: returned(i, "it had not begun")})
		} else {
			left = append(left, i)
		}
	}
	signal.Send(c.ring)
	return left, err
}

// withdraw removes those of some futures that the worker has not claimed, and returns their
// places among them. They are removed at once, so that the same attempts can come again.
func (c *chunk) withdraw(ctx context.Context, ids []layout.ID) (at []int, err error) {
	cluster := c.worker.node.cluster
	outcomes, err := cluster.Unassign(ctx, c.worker.node.worker.ID(), ids)
	var gone []layout.ID
	for n, o := range outcomes {
		if o == fdbmodel.Applied {
			at, gone = append(at, n), append(gone, ids[n])
		}
	}
	// Nothing runs them from here on.
	_, failed := cluster.CancelMany(ctx, gone, "the head wants it back")
	if failed == nil {
		_, failed = cluster.DiscardMany(ctx, gone)
	}
	if failed != nil {
		c.worker.log.Warn("items that are given back can't be removed", "chunk", c.name.chunk, "error", failed)
	}
	return at, err
}
