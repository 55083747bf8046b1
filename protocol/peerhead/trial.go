package peerhead

import (
	"context"
	"errors"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// A peer says what it likes of its slots, and may take orders without a word. Until it has
// answered some items it is on trial: it is given few, none ahead of its slots, and what it
// says nothing of goes to others that could run it.

// trialTime is how long a peer on trial may say nothing of an order. Peers report what they
// have just begun well before.
const trialTime = 700 * time.Millisecond

var errSilent = errors.New("the peer says nothing of the order, and others could run it")

// watchTrial takes an order back if the peer is on trial and says nothing of it. Nodes of b7s
// never do.
func (m *member) watchTrial(o *order) {
	h := m.peer.head
	if _, onTrial := m.peer.score.limit(h.clock.Now(), m.offer.capacity.Slots); !onTrial || h.options.Verify.on() ||
		m.offer.dialect != protocol.DialectFutura {
		return
	}
	h.clock.AfterFunc(o.begun.Add(trialTime), func() { m.beside.run(func() { m.endTrial(o) }) })
}

// endTrial rejects what the peer says nothing of, unless no other worker could run it.
func (m *member) endTrial(o *order) {
	h := m.peer.head
	if m.ctx.Err() != nil || o.open() == 0 || o.wasHeard() || m.peer.isServed() || !h.hasOther(m, o.calls[0].Function) {
		return
	}
	h.rare.Warn("a peer says nothing of an order; others get it", "peer", m.peer.id, "chunk", o.id,
		"futures", o.named(nil))
	m.peer.fault(o.open())
	var left []int
	for i := range o.calls {
		if o.end(i, workers.RemoteOutcome{}, errSilent) {
			left = append(left, i)
		}
	}
	m.remove(o)
	data, err := protocol.Encode(&protocol.CancelOrder{ChunkID: o.id, Indexes: left}, protocol.DialectFutura)
	if err == nil {
		_, err = m.call(m.ctx, data)
	}
	if err != nil && m.ctx.Err() == nil {
		h.options.Logger.Debug("a peer was not told to stop", "peer", m.peer.id, "chunk", o.id, "error", err)
	}
}

// wasHeard reports whether the peer has said something of the order.
func (o *order) wasHeard() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.spoken
}

// isServed reports whether the head is at something that the peer waits for.
func (p *peer) isServed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answering > 0 || len(p.transfers) > 0
}

// lasting returns how many items of an order a peer runs that has run them for a heartbeat,
// once.
func (o *order) lasting(now time.Time, p *protocol.WorkOrderProgress) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lasted || now.Sub(o.begun) < o.member.peer.head.options.Patience {
		return 0
	}
	o.lasted = true
	return min(max(len(p.Items), p.Running), o.left)
}

// hasOther reports whether another worker could run a function, if it had room: a peer of
// this head, or a worker of the cluster. If the store can't be asked, only a peer could. It
// reads the workers in any case: the peer that has the future next is to know the better ones.
func (h *Head) hasOther(than *member, function string) bool {
	ctx, cancel := context.WithTimeout(than.ctx, trialTime)
	defer cancel()
	members, err := h.workers(ctx)
	for _, p := range h.all() {
		if m := p.membership(); m != nil && m != than && p.isConnected() && m.runs(function) {
			return true
		}
	}
	if err != nil {
		return false
	}
	for i := range members {
		m := &members[i]
		if m.ID != than.worker.ID() && m.Labels[layout.LabelPeer] != string(than.peer.id) &&
			m.Runs(function) {
			return true
		}
	}
	return false
}
