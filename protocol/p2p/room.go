package p2p

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/internal/budget"
)

// room is memory for what messages hold beyond small bytes. Most of it is free for whoever
// needs some. The rest are turns, each of which has as much as the largest message needs: a
// message waits for nothing but a turn, and for nothing more once it has one, so those that
// hold a part don't wait for each other.
type room struct {
	free, turns *budget.Bytes
}

func newRoom(memory int64, turns, largest int) room {
	return room{budget.New(max(0, memory-int64(turns)*int64(largest))), budget.New(int64(turns))}
}

// newRoomOfAll has a quarter of it be turns.
func newRoomOfAll(l *Limits) room {
	return newRoom(l.Memory, max(1, int(l.Memory/4/int64(l.MaxMessage))), l.MaxMessage)
}

// holding is what a message holds of its peer's room, and of that of all.
type holding struct {
	own, all room
	bytes    int64 // that were free
	inTurn   bool
}

// grow has the message hold n bytes. Where they are not free it waits for its turn: that of its
// peer first, of which there is one, so that peers take turns. It reports whether it did.
func (m *holding) grow(ctx context.Context, n int64) (waited bool, err error) {
	if m.inTurn || m.tryGrow(n) {
		return false, nil
	}
	if _, err := take(ctx, m.own.turns, m.all.turns, 1); err != nil {
		return true, err
	}
	m.inTurn = true
	return true, nil
}

func (m *holding) tryGrow(n int64) bool {
	more := max(0, n-m.bytes)
	if !m.own.free.TryAcquire(more) {
		return false
	}
	if !m.all.free.TryAcquire(more) {
		m.own.free.Release(more)
		return false
	}
	m.bytes += more
	return true
}

// shrink has a message of which all n bytes are here hold no more, and no turn if they are
// free now.
func (m *holding) shrink(n int64) {
	if surplus := m.bytes - max(0, n); surplus > 0 {
		m.own.free.Release(surplus)
		m.all.free.Release(surplus)
		m.bytes -= surplus
	}
	if m.inTurn && m.tryGrow(n) {
		m.endTurn()
	}
}

func (m *holding) endTurn() {
	m.all.turns.Release(1)
	m.own.turns.Release(1)
	m.inTurn = false
}

func (m *holding) giveBack() {
	if m.inTurn {
		m.endTurn()
	}
	m.shrink(0)
}

// readMessage reads a message of a peer within its room, and that of all. Beyond small bytes
// each of its pieces has a deadline, and all of them have one if it had to wait.
func (h *Host) readMessage(s *share, p *pace, newline bool) (message []byte, giveBack func(), err error) {
	held := &holding{own: s.room, all: h.table.all.room}
	message, err = readMessage(p, h.limits.MaxMessage, newline, func(n int64) error {
		ctx, cancel := context.WithTimeout(h.ctx, h.limits.MessageTimeout)
		defer cancel()
		begin := h.clock.Now()
		waited, err := held.grow(ctx, n)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrBusy, err)
		}
		p.hurry(h.clock.Now().Sub(begin), waited)
		return nil
	})
	if err != nil {
		held.giveBack()
		return nil, nil, err
	}
	held.shrink(int64(cap(message)) - small)
	return message, held.giveBack, nil
}
