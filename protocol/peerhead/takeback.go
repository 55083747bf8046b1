package peerhead

import (
	"fmt"
	"sync"
	"time"

	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// What a peer has not begun goes to others while they have nothing to do: a peer that
// stalls, or turns out to be slow, or gets a long item before short ones, would hold up the
// rest of its order. The peer decides what has not begun, so that nothing runs twice.

// longWait is how long an item waits at a peer at most, whether or not others are idle: the
// head counts its timeout from when it was sent, and has no more patience than
// workers.RemotePatience.
const longWait = workers.RemotePatience / 2

// errTakenBack ends the calls of items that were taken back.
var errTakenBack = fmt.Errorf("the peer had not begun the item, and others are idle: %w", workers.ErrNotBegun)

// askedBack is an item that a peer was asked to give back.
type askedBack struct {
	// fault is set if the peer has a free slot for it by what it offered.
	fault bool
	// again is set if it is not known whether the peer was asked.
	again bool
}

// takeBack asks for items of an order of which a peer says that they wait, if they have
// waited for a heartbeat and other peers have free slots, or for longWait.
func (m *member) takeBack(o *order, p *protocol.WorkOrderProgress) {
	h := m.peer.head
	now := h.clock.Now()
	if h.options.Verify.on() || m.offer.dialect != protocol.DialectFutura || now.Sub(o.begun) < h.options.Patience {
		return
	}
	waiting := o.waiting(p.Items)
	if len(waiting) == 0 {
		return
	}
	free := h.freeBeside(m, o.calls[0].Function, len(waiting), now)
	if now.Sub(o.begun) >= longWait {
		free = len(waiting)
	}
	if free == 0 {
		return
	}
	places := waiting[len(waiting)-free:]
	unused := min(m.offer.capacity.Slots, len(waiting)+len(p.Items)) - len(p.Items)
	if o.calls[0].group.limit > 0 {
		unused = 0 // they wait for each other
	}
	o.mu.Lock()
	for i, place := range places {
		if o.asked == nil {
			o.asked = map[int]askedBack{}
		}
		o.asked[place] = askedBack{fault: i < unused}
	}
	o.mu.Unlock()
	h.options.Logger.Debug("items that a peer has not begun are taken back: others are idle", "peer", m.peer.id,
		"chunk", o.id, "items", len(places), "futures", o.named(places))
	m.beside.run(func() { m.askBack(o, places) })
}

// askBack asks a peer for items. If it may not have heard, the next progress does so again.
func (m *member) askBack(o *order, places []int) {
	data, err := protocol.Encode(&protocol.TakeBack{ChunkID: o.id, Indexes: places, Reason: "others are idle"},
		protocol.DialectFutura)
	if err == nil {
		_, err = m.call(m.ctx, data)
	}
	if err == nil || m.ctx.Err() != nil {
		return
	}
	m.peer.head.options.Logger.Debug("a peer was not asked for items", "peer", m.peer.id, "chunk", o.id, "error", err)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, place := range places {
		o.asked[place] = askedBack{o.asked[place].fault, true}
	}
}

// waiting are the places of items that have not ended, don't run, and are to be asked for.
func (o *order) waiting(running []int) (places []int) {
	runs := make(map[int]bool, len(running))
	for _, i := range running {
		runs[i] = true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, ended := range o.ended {
		if asked, found := o.asked[i]; !ended && (!found || asked.again) && !runs[i] {
			places = append(places, i)
		}
	}
	return places
}

// returned ends an item that the peer gives back, and reports whether that is a fault of it.
func (o *order) returned(index int) bool {
	o.mu.Lock()
	asked, found := o.asked[index]
	o.mu.Unlock()
	if !found {
		o.end(index, workers.RemoteOutcome{}, errReturned)
		return true
	}
	if o.end(index, workers.RemoteOutcome{}, errTakenBack) {
		o.member.peer.takenBack.Add(1)
	}
	return asked.fault
}

// move notes that a call began or ended.
func (m *member) move() { m.moved.Store(m.peer.head.clock.Now().UnixNano()) }

// idle is how many slots of a peer are free for which there is nothing to do: it took nothing
// for a while.
func (m *member) idle(now time.Time) int {
	if now.UnixNano()-m.moved.Load() < int64(m.peer.head.options.Patience/4) {
		return 0
	}
	return m.worker.Stats().Free.Slots
}

// promises are items that were taken back of late for peers that are idle.
type promises struct {
	mu    sync.Mutex
	since time.Time
	items int
}

// freeBeside is how many items of a function other peers could begin now, at most most. What
// was promised to one order within the last patience is not counted for another.
func (h *Head) freeBeside(than *member, function string, most int, now time.Time) int {
	h.promises.mu.Lock()
	defer h.promises.mu.Unlock()
	if now.Sub(h.promises.since) >= h.options.Patience {
		h.promises.since, h.promises.items = now, 0
	}
	free := -h.promises.items
	for _, p := range h.all() {
		if m := p.membership(); m != nil && m != than && p.isConnected() && m.runs(function) {
			free += m.idle(now)
		}
		if free >= most {
			break
		}
	}
	free = min(max(free, 0), most)
	h.promises.items += free
	return free
}
