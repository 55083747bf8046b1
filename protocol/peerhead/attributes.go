package peerhead

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
)

// Nodes of b7s don't say which attributes they have: they answer a roll call that asks for
// some, or they don't. What such a call names counts as labels of the nodes that answer it,
// if the head trusts them, until their connections end.

// wanted are calls for attributes of late.
type wanted struct {
	mu sync.Mutex
	at map[string]time.Time // when it was called, by function and attributes
}

// mostWanted bounds the calls that are remembered.
const mostWanted = 256

// Want has nodes of b7s asked, by a roll call, whether they have the labels that a future of
// a module requires, whose full name is function, so that they can run it. It asks those that
// Options.Trusted names, at most once in 10 s for the same, and does not wait. A node that
// answered for another value of a label is not asked. It does nothing for other functions,
// without labels, and for a head that takes no nodes of b7s.
func (h *Head) Want(function string, labels map[string]string) {
	module, isModule := strings.CutPrefix(function, "wasm:")
	cid, _, _ := strings.Cut(module, "/")
	if !isModule || len(labels) == 0 || h.options.Manifest == nil || !h.mayCall(cid, labels) {
		return
	}
	attributes := &protocol.Attributes{}
	for _, name := range sortedKeys(labels) {
		if name == layout.LabelPeer || layout.CheckLabel(name, labels[name]) != nil {
			return
		}
		attributes.Values = append(attributes.Values, protocol.Parameter{Name: name, Value: labels[name]})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil || h.ended {
		return
	}
	ctx, labels := h.ctx, maps.Clone(labels)
	h.recruits.Go(func() { h.callFor(ctx, cid, labels, attributes) })
}

// mayCall reports whether it is time to call for attributes, and notes it.
func (h *Head) mayCall(cid string, labels map[string]string) bool {
	key := cid + " " + layout.LabelText(labels)
	now := h.clock.Now()
	h.wanted.mu.Lock()
	defer h.wanted.mu.Unlock()
	maps.DeleteFunc(h.wanted.at, func(_ string, at time.Time) bool { return now.Sub(at) >= recruitEvery })
	if _, recent := h.wanted.at[key]; recent || len(h.wanted.at) >= mostWanted {
		return false
	}
	h.wanted.at[key] = now
	return true
}

// callFor asks nodes that may have attributes, and takes note of those that do.
func (h *Head) callFor(ctx context.Context, cid string, labels map[string]string, attributes *protocol.Attributes) {
	asked := map[PeerID]*peer{}
	var mu sync.Mutex
	var ready sync.WaitGroup
	for _, p := range h.all() {
		if !p.mayHave(labels) {
			continue
		}
		ready.Go(func() {
			if p.install(ctx, cid) != nil {
				return
			}
			h.awaitTopic(ctx, p.id, rollTime)
			mu.Lock()
			defer mu.Unlock()
			asked[p.id] = p
		})
	}
	ready.Wait()
	if len(asked) == 0 {
		return
	}
	missing := maps.Clone(asked)
	answers, err := h.RollCall(ctx, protocol.RollCall{FunctionID: cid, Batch: true, Attributes: attributes}, rollTime,
		func(from PeerID) bool {
			delete(missing, from)
			return len(missing) == 0
		})
	if err != nil {
		h.options.Logger.Debug("no roll call for attributes", "error", err)
		return
	}
	for _, a := range answers {
		p := asked[a.Peer]
		if p == nil || !a.Accepted {
			continue
		}
		if err := p.learn(ctx, a, labels); err != nil {
			h.options.Logger.Debug("a node of b7s does not take part", "peer", p.id, "error", err)
		}
	}
}

// mayHave reports whether a node is to be asked for attributes: one that is trusted, and of
// which neither these nor others are known.
func (p *peer) mayHave(labels map[string]string) bool {
	if !p.head.options.Trusted(p.id) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.plain || !p.connected {
		return false
	}
	lacks := false
	for name, value := range labels {
		known, found := p.labels[name]
		if found && known != value {
			return false
		}
		lacks = lacks || !found
	}
	return lacks
}

// learn registers a node anew with attributes for which it has answered a roll call.
func (p *peer) learn(ctx context.Context, a Answer, labels map[string]string) error {
	p.mu.Lock()
	before, all := p.labels, map[string]string{}
	maps.Copy(all, p.labels)
	maps.Copy(all, labels)
	p.labels = all
	p.mu.Unlock()
	err := p.enlist(ctx, a)
	if err != nil {
		p.unlearn(before, labels)
	}
	return err
}

// unlearn has a node be asked again for attributes that it was not registered with, but for those that it had before.
func (p *peer) unlearn(before, labels map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := maps.Clone(p.labels)
	maps.DeleteFunc(kept, func(name, _ string) bool {
		_, asked := labels[name]
		_, had := before[name]
		return asked && !had
	})
	if p.labels = kept; len(kept) == 0 {
		p.labels = nil // as at first: offers are compared
	}
}
