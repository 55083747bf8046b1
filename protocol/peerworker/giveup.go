package peerworker

import (
	"slices"
	"time"

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

// giveUpAgain is after which time items are looked at again that the worker had taken and not
// begun: it gives those back after a moment.
const giveUpAgain = 100 * time.Millisecond

// giveUpAsked gives back what heads want back.
func (w *Worker) giveUpAsked() {
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
		left := c.giveUp(indexes)
		w.mu.Lock()
		if _, newer := w.asked[c]; !newer && len(left) > 0 && w.chunks[c.name] == c {
			w.asked[c] = wanted{left, now.Add(giveUpAgain)}
		}
		w.mu.Unlock()
	}
}

// giveUp gives back those items that have not begun, and returns those that the worker has
// taken and not begun: all while their order is being taken.
func (c *chunk) giveUp(indexes []int) (left []int) {
	w := c.worker
	if w.stopping.Load() {
		return nil // which gives back all
	}
	var unbegun []int
	c.mu.Lock()
	begun := c.begun
	for _, i := range indexes {
		if _, runs := c.running[i]; begun && !c.dropped && !runs && c.states[i] == itemOpen {
			unbegun = append(unbegun, i)
		}
	}
	c.mu.Unlock()
	if !begun {
		return indexes // its order is being written
	}
	back := w.runner.withdraw(c, unbegun)
	w.counts.givenUp.Add(int64(len(back)))
	for _, i := range unbegun {
		if len(back) > 0 && back[0] == i {
			back = back[1:]
			c.end(ended{index: i, outcome: returned(i, "it had not begun"), discarded: true})
		} else {
			left = append(left, i)
		}
	}
	return left
}
