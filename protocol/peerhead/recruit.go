package peerhead

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/protocol"
)

// How often a node is asked to take part.
const (
	recruitEvery = 10 * time.Second // after it has not
	moduleEvery  = time.Second      // while the cluster has no module
	topicEvery   = 10 * time.Millisecond
)

// lookForNodes has nodes of b7s looked for that are to be asked to take part.
func (h *Head) lookForNodes() {
	select {
	case h.nodes <- struct{}{}:
	default:
	}
}

// recruit asks nodes of b7s that are no workers yet to take part, once there is a module
// that they can run, until ctx ends.
func (h *Head) recruit(ctx context.Context) {
	for ctx.Err() == nil {
		var due <-chan time.Time
		stop := func() {}
		next := h.recruitAll(ctx, h.clock.Now())
		if !next.IsZero() {
			timer := h.clock.At(next)
			due = timer.C()
			stop = timer.Stop
		}
		select {
		case <-due:
		case <-h.nodes:
		case <-ctx.Done():
		}
		stop()
	}
}

// recruitAll asks those whose time has come, and returns when the next one's does, zero if
// there is none.
func (h *Head) recruitAll(ctx context.Context, now time.Time) (next time.Time) {
	var asked []*peer
	for _, p := range h.all() {
		p.mu.Lock()
		if p.plain && p.connected && p.member == nil {
			if !now.Before(p.recruitAt) {
				p.recruitAt = now.Add(recruitEvery + installTime + 2*rollTime)
				asked = append(asked, p)
			}
			if next.IsZero() || p.recruitAt.Before(next) {
				next = p.recruitAt
			}
		}
		p.mu.Unlock()
	}
	if len(asked) == 0 {
		return next
	}
	modules, err := modules.Of(h.options.Cluster).List(ctx)
	if err != nil || len(modules) == 0 {
		return h.postpone(asked, now.Add(moduleEvery))
	}
	newest := slices.MaxFunc(modules, func(a, b layout.Module) int { return cmp.Compare(a.StoredAt, b.StoredAt) })
	for _, p := range asked {
		h.recruits.Go(func() {
			if err := p.recruit(ctx, newest.CID); err != nil {
				h.options.Logger.Debug("a node of b7s does not take part", "peer", p.id, "error", err)
			}
			h.postpone([]*peer{p}, h.clock.Now().Add(recruitEvery))
			h.lookForNodes()
		})
	}
	return next
}

// postpone sets when peers are asked, and returns that.
func (h *Head) postpone(peers []*peer, until time.Time) time.Time {
	for _, p := range peers {
		p.mu.Lock()
		p.recruitAt = until
		p.mu.Unlock()
	}
	return until
}

// awaitTopic waits until a peer is known to be on the topic of roll calls, if the network can
// tell, and for so long at most: what is published before is lost for the peer.
func (h *Head) awaitTopic(ctx context.Context, id PeerID, most time.Duration) {
	network, tells := h.options.Network.(interface {
		TopicPeers(topic string) ([]PeerID, error)
	})
	if !tells {
		return
	}
	for end := h.clock.Now().Add(most); h.clock.Now().Before(end); {
		on, err := network.TopicPeers(protocol.TopicGeneral)
		if err != nil || slices.Contains(on, id) || clock.Sleep(ctx, h.clock, topicEvery) != nil {
			return
		}
	}
}

// recruit has a node install a module and answer a roll call, and registers it.
func (p *peer) recruit(ctx context.Context, cid string) error {
	h := p.head
	if err := p.install(ctx, cid); err != nil {
		return err
	}
	h.awaitTopic(ctx, p.id, rollTime)
	answers, err := h.RollCall(ctx, protocol.RollCall{FunctionID: cid, Batch: true}, rollTime, func(from PeerID) bool {
		return from == p.id
	})
	if err != nil {
		return err
	}
	for _, a := range answers {
		if a.Peer != p.id || !a.Accepted {
			continue
		}
		return p.enlist(ctx, a)
	}
	return errors.New("it did not answer the roll call")
}

// enlist registers a node that has accepted a roll call.
func (p *peer) enlist(ctx context.Context, a Answer) error {
	slots := p.head.options.B7SSlots
	o := offer{dialect: protocol.DialectChunk, functions: []string{layout.AnyModule}, capacity: protocol.Capacity{
		Slots: slots, CPUMillis: int64(slots) * 1000, RAMBytes: b7sRAM,
	}}
	if !a.BatchSupport {
		if !p.head.options.AdmitStrand {
			return errors.New("it does not support batches; AdmitStrand admits the older dialect")
		}
		o.dialect = protocol.DialectStrand
	}
	p.mu.Lock()
	o.labels = p.labels
	p.mu.Unlock()
	return p.greet(ctx, o)
}
