package peerhead

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/workers"
)

// Times of nodes of b7s.
const (
	installTime = 30 * time.Second
	rollTime    = 5 * time.Second
)

var errNotInstalled = errors.New("the node did not install the module")

// HandleMessage takes a message that a peer sent on a stream of b7s. Nothing that is published is for a head.
func (h *Head) HandleMessage(ctx context.Context, from PeerID, message []byte, published bool) {
	if published {
		return
	}
	m, err := protocol.Decode(message)
	if err != nil {
		h.options.Logger.Debug("a peer sent what can't be read", "peer", from, "error", err)
		return
	}
	if m, ok := m.(*protocol.ExecuteBatch); ok {
		h.execute(ctx, from, m)
		return
	}
	p := h.peer(from)
	if p == nil {
		return
	}
	p.hear(0)
	switch m := m.(type) {
	case *protocol.RollCallResponse:
		h.rolls.answer(from, m)
	case *protocol.InstallFunctionResponse:
		p.noteInstalled(m)
	case *protocol.WorkOrderBatchResponse:
		p.b7sResults(m)
	}
}

// execute answers a client.
func (h *Head) execute(ctx context.Context, from PeerID, m *protocol.ExecuteBatch) {
	if h.options.Execute == nil {
		h.options.Logger.Debug("a peer asked for a batch, which this head does not take by messages", "peer", from)
		return
	}
	answer := h.options.Execute(ctx, from, m)
	if answer == nil {
		return
	}
	answer.Envelope = m.Envelope
	err := h.reply(ctx, from, answer)
	if errors.Is(err, protocol.ErrLimit) || errors.Is(err, p2p.ErrTooLarge) {
		err = h.reply(ctx, from, &protocol.ExecuteBatchResponse{Envelope: m.Envelope, RequestID: answer.RequestID,
			Code: protocol.CodeError, Message: "the results have no room in a message: get them by HTTP"})
	}
	if err != nil {
		h.rare.Warn("the answer to a batch was not sent", "peer", from, "request", answer.RequestID, "error", err)
	}
}

func (h *Head) reply(ctx context.Context, to PeerID, answer *protocol.ExecuteBatchResponse) error {
	data, err := protocol.Encode(answer, protocol.DialectChunk)
	if err != nil {
		return err
	}
	return h.options.Network.Send(ctx, to, data)
}

// install has a node of b7s install a module, if it has not.
func (p *peer) install(ctx context.Context, cid string) error {
	h := p.head
	if h.options.Manifest == nil {
		return fmt.Errorf("%w: the head serves no manifests", errNotInstalled)
	}
	p.mu.Lock()
	if p.installed == nil {
		p.installed = map[string]chan struct{}{}
	}
	has := p.installed[cid]
	if has == nil {
		has = make(chan struct{})
		p.installed[cid] = has
	}
	p.mu.Unlock()
	select {
	case <-has:
		return nil
	default:
	}
	order := protocol.InstallFunction{ManifestURL: h.options.Manifest(cid), CID: cid}
	data, err := protocol.Encode(&order, protocol.DialectChunk)
	if err != nil {
		return err
	}
	if err := h.options.Network.Send(ctx, p.id, data); err != nil {
		return err
	}
	timer := h.clock.At(h.clock.Now().Add(installTime))
	defer timer.Stop()
	select {
	case <-has:
		return nil
	case <-timer.C():
		return errNotInstalled
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *peer) noteInstalled(m *protocol.InstallFunctionResponse) {
	if m.Code != protocol.CodeAccepted && m.Code != protocol.CodeOK {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	has := p.installed[m.CID] // nobody waits for others
	if has == nil {
		return
	}
	select {
	case <-has:
	default:
		close(has)
	}
}

// placeB7S has a node of b7s take an order, which it does not confirm.
func (m *member) placeB7S(o *order, data []byte) {
	cid, _ := o.calls[0].module()
	if err := m.peer.install(m.ctx, cid); err != nil {
		m.peer.fault(1)
		m.giveUp(o, err)
		return
	}
	h := m.peer.head
	for wait := placeMin; ; wait = min(2*wait, placeMax) {
		err := h.options.Network.Send(m.ctx, m.peer.id, data)
		if err == nil || m.ctx.Err() != nil {
			return
		}
		if errors.Is(err, p2p.ErrTooLarge) {
			m.divide(o, err)
			return
		}
		h.options.Logger.Debug("a node of b7s can't be reached; retrying", "peer", m.peer.id, "error", err)
		if o.open() == 0 || clock.Sleep(m.ctx, h.clock, wait) != nil {
			m.remove(o)
			return
		}
	}
}

// b7sResults ends an order with what a node of b7s says. Items without a result were not
// run.
func (p *peer) b7sResults(r *protocol.WorkOrderBatchResponse) {
	m, o := p.find(r.ChunkID)
	if o == nil {
		m, o = p.find(r.RequestID)
	}
	if o == nil || m.offer.dialect == protocol.DialectFutura {
		p.refused.Add(int64(len(r.Results)))
		return
	}
	idle := false
	var tally tally
	for i, c := range o.calls {
		result, found := r.Results[c.itemID()]
		switch {
		case !found:
			o.end(i, workers.RemoteOutcome{}, errors.New("the node returned no result of the item"))
			tally.faults++
		case result.Code == "" && result.Result.ExitCode == 0:
			o.end(i, workers.RemoteOutcome{}, errors.New("the node did not run the item"))
			idle = true
			tally.faults++
		default:
			tally.ran += p.b7sEnd(o, i, &result.NodeResult)
			tally.answers++
		}
	}
	m.remove(o)
	tally.count(p, o)
	if idle {
		p.retrain(m)
	}
}

// retrain ends the membership of a node that lacks a module it had installed: not as a death,
// since what it did not run did it no harm. After a while it is asked again to install and to
// take part.
func (p *peer) retrain(m *member) {
	p.mu.Lock()
	p.forgetInstalled()
	p.recruitAt = p.head.clock.Now().Add(recruitEvery)
	p.mu.Unlock()
	p.head.lookForNodes()
	p.head.rare.Warn("a node of b7s did not run what it was ordered; asking it again to install", "peer", p.id)
	m.leave()
}

// forgetInstalled has a node be asked again to install what it had: it may have lost that. Who waits for an
// installation still hears of it. It is called under mu.
func (p *peer) forgetInstalled() {
	for cid, has := range p.installed {
		select {
		case <-has:
			delete(p.installed, cid)
		default:
		}
	}
}

// b7sEnd ends an item with what the node says of it, and returns how long it ran.
func (p *peer) b7sEnd(o *order, index int, r *protocol.NodeResult) time.Duration {
	out := workers.RemoteOutcome{
		Value: []byte(r.Result.Stdout), Stderr: []byte(r.Result.Stderr), ExitCode: r.Result.ExitCode,
	}
	o.member.bill(&out, o, &r.Usage)
	tally := &p.done
	if !r.OK() {
		tally = &p.failed
		out.Kind, out.Message = layout.KindExit, fmt.Sprintf("the node answered code %q, exit code %d", r.Code, out.ExitCode)
		if out.ExitCode == 0 {
			out.Kind = layout.KindError
		}
	}
	if o.end(index, out, nil) {
		tally.Add(1)
	}
	return out.RunTime
}

// Answer is a peer's answer to a roll call.
type Answer struct {
	Peer PeerID
	// Accepted is set if it takes part, and BatchSupport if it said that for batches.
	Accepted, BatchSupport bool
}

// RollCall publishes a roll call, and returns the peers that answered within a time, in the order of
// their answers. It returns earlier once enough is true of one that accepted. The call's
// RequestID is drawn. It returns the network's error, and protocol.ErrLimit for a call that is too large to be
// published.
func (h *Head) RollCall(ctx context.Context, call protocol.RollCall, within time.Duration, enough func(PeerID) bool,
) ([]Answer, error) {
	call.RequestID = uuid.NewString()
	data, err := protocol.GossipLimits().Encode(&call, protocol.DialectChunk)
	if err != nil {
		return nil, err
	}
	answers := h.rolls.begin(&call)
	defer h.rolls.end(&call)
	if err := h.options.Network.Publish(ctx, protocol.TopicGeneral, data); err != nil {
		return nil, err
	}
	timer := h.clock.At(h.clock.Now().Add(within))
	defer timer.Stop()
	var all []Answer
	for {
		select {
		case a := <-answers:
			if all = append(all, a); a.Accepted && enough(a.Peer) {
				return all, nil
			}
		case <-timer.C():
			return all, nil
		case <-ctx.Done():
			return all, ctx.Err()
		}
	}
}
