package peerhead

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// ackTime is how long the answer to results waits until they are stored.
const ackTime = 20 * time.Second

// HandleCall answers a message that a peer sent on a stream of Futura. It returns once
// results are stored, or can't be. The context bounds it.
func (h *Head) HandleCall(ctx context.Context, from PeerID, message []byte) []byte {
	var answer protocol.Message
	m, err := protocol.Decode(message)
	if err != nil {
		h.options.Logger.Debug("a peer sent what can't be read", "peer", from, "error", err)
		answer = &protocol.Ack{Code: protocol.CodeInvalid, Message: err.Error()}
	} else {
		answer = h.answer(ctx, from, m)
	}
	data, err := protocol.Encode(answer, protocol.DialectFutura)
	if err != nil {
		h.options.Logger.Error("an answer can't be encoded", "peer", from, "error", err)
	}
	return data
}

func (h *Head) answer(ctx context.Context, from PeerID, m protocol.Message) protocol.Message {
	if hello, ok := m.(*protocol.Hello); ok {
		return h.welcome(ctx, from, hello)
	}
	p := h.peer(from)
	if p == nil {
		return &protocol.Ack{Code: protocol.CodeNotAuthorized, Message: "say hello first"}
	}
	p.hear(1)
	defer p.hear(-1)
	switch m := m.(type) {
	case *protocol.WorkOrderBatchResponse:
		return h.results(ctx, p, m)
	case *protocol.WorkOrderProgress:
		return p.progress(ctx, m)
	case *protocol.Goodbye:
		return p.goodbye(m)
	default:
		return &protocol.Ack{Code: protocol.CodeNotSupported, Message: "a head does not take " + m.Type()}
	}
}

// welcome registers a peer.
func (h *Head) welcome(ctx context.Context, from PeerID, m *protocol.Hello) *protocol.HelloResponse {
	o, err := offerOf(m, h.options.Trusted(from))
	if err != nil {
		return &protocol.HelloResponse{Code: protocol.CodeInvalid, Message: err.Error()}
	}
	p := h.admit(from)
	if p == nil {
		return &protocol.HelloResponse{Code: protocol.CodeUnavailable, Message: fmt.Sprintf(
			"the head takes no more than %d peers, or is ending", h.options.MaxPeers)}
	}
	if err := p.greet(ctx, o); err != nil {
		return &protocol.HelloResponse{Code: protocol.CodeUnavailable, Message: err.Error()}
	}
	config := h.options.Cluster.Config()
	answer := &protocol.HelloResponse{
		Code: protocol.CodeOK, Head: h.options.Name, HeartbeatMS: max(config.Heartbeat.Milliseconds(), 1),
		DeadAfterMS: h.options.Grace.Milliseconds(),
	}
	now := h.clock.Now()
	for _, kept := range m.Kept {
		answer.Wanted = append(answer.Wanted, kept.ChunkID)
	}
	for _, id := range m.Running {
		if _, o := p.find(id); o != nil {
			o.hear(now)
		} // what it runs of an earlier membership may still count
	}
	return answer
}

// progress hears how far a chunk is, and says what is not wanted of one that the head does not know.
func (p *peer) progress(ctx context.Context, m *protocol.WorkOrderProgress) *protocol.Ack {
	answer := &protocol.Ack{Code: protocol.CodeOK, ChunkID: m.ChunkID}
	member, o := p.find(m.ChunkID)
	if member == nil {
		answer.Code, answer.Message = protocol.CodeNotAuthorized, "say hello first"
		return answer
	}
	if o == nil {
		answer.Code, answer.Message, answer.Unwanted = p.head.unwanted(ctx, p, m)
		return answer
	}
	if sameMAC(o.mac, m.OrderMAC) {
		now := p.head.clock.Now()
		o.hear(now)
		if n := o.lasting(now, m); n > 0 {
			p.score.lasts(n)
			p.settleLimit()
		}
		if member == p.membership() {
			member.takeBack(o, m)
		}
	}
	return answer
}

// goodbye takes back what a peer will not run, and lets the rest end.
func (p *peer) goodbye(m *protocol.Goodbye) *protocol.Ack {
	member := p.membership()
	if member == nil {
		return &protocol.Ack{Code: protocol.CodeOK}
	}
	p.leaves.Store(true)
	member.worker.Pause()
	for _, r := range m.Returned {
		has, o := p.find(r.ChunkID)
		if o == nil {
			continue
		}
		if len(r.Indexes) == 0 {
			o.fail(errReturned)
		}
		for _, i := range r.Indexes {
			if i >= 0 && i < len(o.calls) {
				o.end(i, workers.RemoteOutcome{}, errReturned)
			}
		}
		if o.open() == 0 {
			has.remove(o)
		}
	}
	member.leave()
	return &protocol.Ack{Code: protocol.CodeOK}
}

// results ends items with what the peer says of them, and answers once that is stored.
func (h *Head) results(ctx context.Context, p *peer, r *protocol.WorkOrderBatchResponse) *protocol.Ack {
	answer := &protocol.Ack{Code: protocol.CodeOK, ChunkID: r.ChunkID}
	m, o := p.find(r.ChunkID)
	if m == nil && !p.leaves.Load() {
		answer.Code, answer.Message = protocol.CodeNotAuthorized, "say hello first"
		return answer
	}
	if o == nil {
		answer.Code, answer.Message = h.late(ctx, p, r)
		return answer
	}
	if !sameMAC(o.mac, r.OrderMAC) {
		p.refused.Add(int64(len(r.Outcomes)))
		p.fault(1)
		answer.Code, answer.Message = protocol.CodeGone, "the order MAC is not that of the chunk"
		return answer
	}
	o.hear(h.clock.Now())
	if !m.awaitAcks(ctx, m.take(o, r.Outcomes)) {
		answer.Code, answer.Message = protocol.CodeUnavailable, "the results are not stored yet"
	} else if o.open() == 0 {
		m.remove(o)
	}
	return answer
}

// take ends items with their outcomes. It returns what is closed as they are stored, also
// for those that ended before. Places that the order does not have, and items that have
// ended, change nothing.
func (m *member) take(o *order, outcomes []protocol.Outcome) (stored []<-chan struct{}) {
	p := m.peer
	var tally tally
	defer func() { tally.count(p, o) }()
	for i := range outcomes {
		x := &outcomes[i]
		if x.Index < 0 || x.Index >= len(o.calls) {
			p.refused.Add(1)
			tally.faults++
			continue
		}
		unacked, ended := o.ackOf(x.Index)
		if ended {
			p.refused.Add(1)
			if unacked != nil {
				stored = append(stored, unacked)
			}
			continue
		}
		if x.Code == protocol.CodeUnavailable {
			if o.returned(x.Index) {
				tally.faults++
			}
			continue
		}
		call := o.calls[x.Index]
		out, err := p.head.outcome(p.id, attempt{call.ID, call.Attempt}, x)
		if err != nil {
			p.refused.Add(1)
			tally.faults++
			o.end(x.Index, workers.RemoteOutcome{}, err)
			continue
		}
		m.bill(&out, o, &x.Usage)
		tally.answers, tally.ran = tally.answers+1, out.RunTime
		stored = append(stored, m.hand(o, x.Index, out))
	}
	return stored
}

// closed is the acknowledgement of what is not stored.
var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// hand ends an item with an outcome, and returns what is closed once that is stored.
func (m *member) hand(o *order, index int, out workers.RemoteOutcome) <-chan struct{} {
	unacked := closed
	switch c := o.calls[index]; {
	case c.over == nil:
		unacked = m.expectAck(c.ID)
	case out.Large != nil:
		unacked = c.over // until then the peer is to keep it
	}
	o.mu.Lock()
	o.acks[index] = unacked
	o.mu.Unlock()
	switch first := o.end(index, out, nil); {
	case first && out.Kind == "":
		m.peer.done.Add(1)
	case first:
		m.peer.failed.Add(1)
	case o.calls[index].isWithdrawn():
		m.Acknowledge([]layout.ID{o.calls[index].ID}) // the outcome is not taken, so none is stored
	}
	return unacked
}

func (o *order) ackOf(index int) (unacked <-chan struct{}, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.acks[index], o.ended[index]
}

// awaitAcks waits until ends are stored.
func (m *member) awaitAcks(ctx context.Context, stored []<-chan struct{}) bool {
	timer := m.peer.head.clock.At(m.peer.head.clock.Now().Add(ackTime))
	defer timer.Stop()
	for _, acknowledged := range stored {
		select {
		case <-acknowledged:
		case <-timer.C():
			return false
		case <-ctx.Done():
			return false
		case <-m.ctx.Done():
			return false
		}
	}
	return true
}

// outcome is what an outcome of an attempt says on the wire. A value that the peer has as
// a blob is fetched by the worker that has the attempt: it may take longer than any answer.
// It returns an error for what no peer that runs the attempt says.
func (h *Head) outcome(from PeerID, at attempt, x *protocol.Outcome) (out workers.RemoteOutcome, err error) {
	out = workers.RemoteOutcome{Value: x.Value, Stderr: x.Stderr, Truncated: x.Truncated, ExitCode: x.ExitCode}
	if x.Blob != nil {
		if x.Blob.Size < 1 || x.Blob.Size > layout.MaxPut {
			return out, fmt.Errorf("the peer says that it has a result of %d bytes apart: 1 to %d", x.Blob.Size, layout.MaxPut)
		}
		out.Large = &blobValue{h, at, []held{{from, *x.Blob}}}
	}
	if out.Large == nil && len(out.Value) == 0 && len(x.Stdout) > 0 {
		out.Value = x.Stdout
	}
	switch {
	case x.OK():
		return out, nil
	case x.Code == protocol.CodeAccepted:
		wait := bounded(x.SnoozeMS)
		return workers.RemoteOutcome{Snooze: &wait}, nil
	}
	out.Truncated, out.Large = out.Truncated || out.Large != nil, nil
	out.Kind, out.Message, out.Permanent = layout.FailureKind(x.Kind), x.Message, x.Permanent
	if x.RetryMS != nil {
		wait := bounded(*x.RetryMS)
		out.RetryIn = &wait
	}
	switch {
	case out.Kind == "" && x.ExitCode != 0:
		out.Kind = layout.KindExit
	case out.Kind == "":
		out.Kind = layout.KindError
	}
	if out.Kind == layout.KindExit {
		out.ExitCode = int(uint32(x.ExitCode)) // a module's has no sign
	}
	if out.Message == "" {
		out.Message = fmt.Sprintf("the peer answered code %q, exit code %d", x.Code, x.ExitCode)
	}
	return out, nil
}

// longestWait is the longest that a peer may ask an attempt to wait.
const longestWait = 366 * 24 * time.Hour

func bounded(millis int64) time.Duration {
	return time.Duration(min(max(millis, 0), longestWait.Milliseconds())) * time.Millisecond
}

// refusal is the error for an answer that refuses an order.
func refusal(answer protocol.Message) error {
	if ack, ok := answer.(*protocol.Ack); ok {
		return fmt.Errorf("the peer refused the order: %s %s", ack.Code, ack.Message)
	}
	return errors.New("the peer answered an order with " + answer.Type())
}
