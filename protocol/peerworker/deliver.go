package peerworker

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/futura-run/futura/internal/signal"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
)

// Bounds of messages with outcomes.
const (
	maxOutcomes     = 1000
	maxOutcomeBytes = 4 << 20
	// maxFlights is how many of a chunk are under way at a time.
	maxFlights = 4
	// callTime bounds one message and its answer.
	callTime = 30 * time.Second
	// retryMin and retryMax bound the wait before what the head did not take is sent
	// again, which doubles each time.
	retryMin = 100 * time.Millisecond
	retryMax = 30 * time.Second
)

// deliver sends outcomes to the head as they come, until it has all.
func (c *chunk) deliver(ctx context.Context) {
	if c.order != nil {
		c.deliverB7S(ctx)
		return
	}
	for {
		if c.isOver() {
			signal.Send(c.worker.news)
			return
		}
		select {
		case <-c.ring:
		case <-ctx.Done():
			return
		}
		c.gather(ctx)
		for {
			if !c.awaitHead(ctx) {
				return
			}
			part, partial := c.take()
			if len(part) == 0 {
				break
			}
			c.worker.spawn(func() { c.send(ctx, part, partial) })
		}
	}
}

// awaitHead waits until the head has answered Hello. It returns false once the chunk is forgotten, which need not
// wait for a head that does not come back, or when ctx ends.
func (c *chunk) awaitHead(ctx context.Context) bool {
	l := c.worker.linkFor(c)
	if l == nil {
		return false
	}
	return l.awaitUp(ctx, c.gone) == nil
}

// gather waits for a moment for more outcomes of a chunk that goes on.
func (c *chunk) gather(ctx context.Context) {
	timer := time.NewTimer(gather)
	defer timer.Stop()
	for {
		c.mu.Lock()
		more := c.open > 0 && len(c.queue) > 0 && !c.dropped
		c.mu.Unlock()
		if !more {
			return
		}
		select {
		case <-c.ring:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// take returns the outcomes of the next message, none if it is to wait. The last
// message of a chunk waits until the head has the others.
func (c *chunk) take() (part []ended, partial bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropped || len(c.queue) == 0 || c.flights >= maxFlights {
		return nil, false
	}
	n, size := 0, int64(0)
	for n < len(c.queue) && n < c.most && (n == 0 || size+inMessage(c.queue[n].size) <= maxOutcomeBytes) {
		size += inMessage(c.queue[n].size)
		n++
	}
	partial = c.open > 0 || n < len(c.queue)
	if !partial && c.flights > 0 {
		return nil, false
	}
	part = c.queue[:n:n]
	c.queue = c.queue[n:]
	c.flights++
	return part, partial
}

// inMessage is about what an outcome takes of a message.
func inMessage(size int64) int64 {
	const fixed = 200
	if size > maxInline+maxInline/4 {
		return fixed // a blob
	}
	return fixed + size
}

// requeue takes back what the head has not taken.
func (c *chunk) requeue(rest []ended) {
	c.mu.Lock()
	c.flights--
	if c.dropped {
		rest = nil
	}
	c.queue = append(rest, c.queue...)
	c.mu.Unlock()
	signal.Send(c.ring)
	signal.Send(c.worker.news)
}

// send sends one message, and heeds the answer.
func (c *chunk) send(ctx context.Context, part []ended, partial bool) {
	m := &protocol.WorkOrderBatchResponse{
		RequestID: c.request, ChunkID: c.name.chunk, OrderMAC: c.mac, Partial: partial,
		Outcomes: make([]protocol.Outcome, len(part)),
	}
	c.mu.Lock()
	proving := c.prove
	c.mu.Unlock()
	if proving {
		m.Items = c.proof()
	}
	for i, e := range part {
		m.Outcomes[i] = *e.outcome
	}
	data, err := protocol.Encode(m, protocol.DialectFutura)
	if err != nil {
		sendable(m)
		data, err = protocol.Encode(m, protocol.DialectFutura)
	}
	var answer protocol.Message
	if err == nil {
		answer, err = c.worker.ask(ctx, c.name.head, data)
	}
	if err != nil && c.split(part, err) {
		return
	}
	code := protocol.Code("")
	if ack, ok := answer.(*protocol.Ack); ok && err == nil {
		code = ack.Code
	}
	switch code {
	case protocol.CodeOK:
		c.acknowledged(part)
	case protocol.CodeGone:
		c.requeue(part)
		c.drop(unwanted)
	case protocol.CodeConflict:
		if proving {
			c.refused(ctx, part, code, err)
			return
		}
		c.mu.Lock()
		c.prove = true
		c.mu.Unlock()
		c.requeue(part)
	default:
		c.refused(ctx, part, code, err)
	}
}

// split has outcomes be sent in smaller messages if the network carries none that is as large, and reports whether it
// does: in JSON a text may take six times as much.
func (c *chunk) split(part []ended, err error) bool {
	if len(part) == 1 || !errors.Is(err, p2p.ErrTooLarge) && !errors.Is(err, protocol.ErrLimit) {
		return false
	}
	c.mu.Lock()
	c.most = min(c.most, len(part)/2)
	c.mu.Unlock()
	c.requeue(part)
	return true
}

// proof is the items by which a head finds out that it gave the order.
func (c *chunk) proof() []protocol.OrderItem {
	items := make([]protocol.OrderItem, len(c.items))
	for i, it := range c.items {
		items[i] = protocol.OrderItem{ID: it.future.String(), Attempt: int(it.attempt)}
	}
	return items
}

func (c *chunk) acknowledged(part []ended) {
	c.mu.Lock()
	c.wait = 0
	c.mu.Unlock()
	c.worker.counts.delivered.Add(int64(len(part)))
	c.settle(part)
	c.requeue(nil)
}

// refused has outcomes sent again later: after a wait, or once the head is back.
func (c *chunk) refused(ctx context.Context, part []ended, code protocol.Code, err error) {
	if ctx.Err() != nil {
		return
	}
	c.worker.counts.refused.Add(1)
	link := c.worker.linkFor(c)
	if link == nil {
		return // it is forgotten
	}
	if code == protocol.CodeNotAuthorized {
		link.greetAgain()
	}
	c.mu.Lock()
	now := time.Now()
	if !now.Before(c.again) { // else others of the chunk wait already
		c.wait = min(max(2*c.wait, retryMin), retryMax)
		c.again = now.Add(time.Duration(float64(c.wait) * (0.8 + 0.4*rand.Float64())))
	}
	pause := c.again.Sub(now)
	c.mu.Unlock()
	c.worker.log.Debug("the head has not taken results; sending them again", "chunk", c.name.chunk, "code", code,
		"error", err, "in", pause)
	_ = link.waitOrChange(ctx, pause) // the end of ctx ends deliver as well
	c.requeue(part)
}
