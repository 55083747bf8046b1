package peerhead

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/budget"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
)

// peer is a peer from the first time that it says what it is, until it is away.
type peer struct {
	head  *Head
	id    PeerID
	score *score

	greeting    chan struct{} // has an element while a membership begins
	memberships *rate.Limiter
	fetches     *budget.Bytes // blobs that are fetched

	mu        sync.Mutex
	connected bool
	session   uint64    // of the connection
	away      time.Time // since when it is not connected
	reason    string    // why its last membership was reaped, empty for a present one
	heard     time.Time
	answering int // messages of it
	offer     offer
	member    *member // the present membership, nil for none
	leaving   *member // the one that it has replaced, nil for none
	// Of a node of b7s.
	labels    map[string]string // attributes for which it answered over this connection; replaced as a whole
	plain     bool
	recruitAt time.Time                // when it is asked again to take part
	installed map[string]chan struct{} // closed for modules that it has, by content id

	leaves    atomic.Bool            // it has said goodbye, and delivers what it has
	transfers map[*transfer]struct{} // under mu

	done, failed, refused, disagreed, takenBack atomic.Int64
}

// offer is what a peer says of itself.
type offer struct {
	dialect     protocol.Dialect
	incarnation string
	name        string
	labels      map[string]string
	capacity    protocol.Capacity
	functions   []string
	maxChunk    int
	limits      bool // it keeps those of orders
}

// How often a peer may begin a membership, by what it says: each costs the store some
// transactions.
const (
	membershipRate  = rate.Limit(1) // per second
	membershipBurst = 8
)

// errHasty is returned for a peer that changes what it offers too often.
var errHasty = errors.New("the peer changes what it offers too often: wait a second")

// errForgotten is returned for a peer that was forgotten as it said hello.
var errForgotten = errors.New("the peer was away for too long: say hello again")

// maxSlots bounds the items that a peer is given at a time.
const maxSlots = 4096

// maxFunctionNames bounds the bytes of the names of functions that a peer offers: they are in
// its record in the store, and in memory of the head.
const maxFunctionNames = 32 << 10

// offerOf returns what a hello offers, and an error for what can't be.
func offerOf(m *protocol.Hello, trusted bool) (offer, error) {
	o := offer{
		dialect: protocol.DialectFutura, incarnation: m.Incarnation, capacity: m.Capacity, functions: m.Functions,
		maxChunk: m.MaxChunk, limits: m.Limits,
	}
	if o.capacity.Slots < 1 {
		return o, fmt.Errorf("capacity of %d slots: offer at least 1", o.capacity.Slots)
	}
	o.capacity.Slots = min(o.capacity.Slots, maxSlots)
	if o.capacity.CPUMillis < 0 || o.capacity.RAMBytes < 0 || o.capacity.GPUMillis < 0 {
		return o, errors.New("a capacity below 0")
	}
	if len(o.functions) == 0 {
		return o, errors.New("no functions: offer those that it runs, or wasm:*")
	}
	size := 0
	for _, name := range o.functions {
		if size += len(name); size > maxFunctionNames {
			return o, fmt.Errorf("%d functions, whose names have more than %d bytes: offer fewer", len(o.functions),
				maxFunctionNames)
		}
		if name == layout.AnyModule {
			continue
		}
		if err := layout.CheckFunctionName(name); err != nil {
			return o, err
		}
	}
	if trusted {
		o.name, o.labels = m.Name, m.Labels
		for name, value := range m.Labels {
			if err := layout.CheckLabel(name, value); err != nil {
				return o, err
			}
			if name == layout.LabelPeer {
				return o, fmt.Errorf("label %s is the head's to give: leave it out", name)
			}
		}
	}
	return o, nil
}

// greet registers the peer with what it offers, unless it is registered so. A peer that
// has restarted is reaped first.
func (p *peer) greet(ctx context.Context, o offer) error {
	select {
	case p.greeting <- struct{}{}:
		defer func() { <-p.greeting }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.head.peer(p.id) != p {
		return errForgotten // nothing would look after the membership
	}
	p.mu.Lock()
	m, before := p.member, p.offer
	now := p.head.clock.Now()
	p.heard, p.connected = now, true
	p.mu.Unlock()
	if m != nil && reflect.DeepEqual(before, o) {
		return nil
	}
	if !p.memberships.AllowN(now, 1) {
		return errHasty
	}
	switch {
	case m != nil && before.incarnation != o.incarnation:
		p.lose(m, "the peer has restarted")
	case m != nil:
		p.replace(m)
	}
	m, err := p.begin(ctx, o)
	if err != nil {
		return err
	}
	p.leaves.Store(false)
	p.mu.Lock()
	p.member, p.offer, p.reason = m, o, ""
	p.mu.Unlock()
	p.head.standings.change()
	if p.head.hasEnded() { // it knew nothing of the membership when it had all leave
		m.leave()
	}
	if m.ctx.Err() != nil {
		p.unset(m)
		return ErrClosed
	}
	return nil
}

// replace lets what the peer runs end, and buries what is left of the membership before,
// so that a peer never has more than twice its slots.
func (p *peer) replace(m *member) {
	p.mu.Lock()
	before := p.leaving
	p.leaving = m
	p.mu.Unlock()
	if before != nil && !before.isOver() {
		before.forceReap("the peer has changed what it offers twice")
	}
	m.leave()
	p.unset(m)
}

// find returns an order of the peer with its membership: the present one, or the one before that still lets what the
// peer runs end. Without such an order it returns the present membership.
func (p *peer) find(chunk string) (*member, *order) {
	p.mu.Lock()
	m, before := p.member, p.leaving
	p.mu.Unlock()
	for _, has := range []*member{m, before} {
		if has == nil || has.ctx.Err() != nil {
			continue
		}
		if o := has.order(chunk); o != nil {
			return has, o
		}
	}
	return m, nil
}

func (p *peer) unset(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.member == m {
		p.member = nil
		defer p.head.standings.change()
		p.head.lookForNodes()
	}
}

// lose buries a membership: its futures go back as after a death.
func (p *peer) lose(m *member, why string) {
	p.unset(m)
	p.mu.Lock()
	p.reason = why
	p.mu.Unlock()
	_, items := m.load()
	p.fault(items)
	m.forceReap(why)
}

// leave ends the present membership in order.
func (p *peer) leave() {
	p.mu.Lock()
	m := p.member
	p.mu.Unlock()
	if m != nil {
		m.leave()
	}
}

func (p *peer) isConnected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connected
}

func (p *peer) membership() *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.member
}

// observe takes how the peer is connected. What a node of b7s runs may have died with a
// connection, and nothing would say so later.
func (p *peer) observe(l p2p.Peer) {
	p.mu.Lock()
	broke := p.connected && !l.Connected
	if broke {
		p.away = p.head.clock.Now()
	}
	broke = broke || p.session != 0 && l.Connected && l.Session != p.session
	if l.Connected {
		p.session = l.Session
	}
	if broke {
		p.forgetInstalled()
		p.labels = nil
	}
	p.connected, p.plain = l.Connected, l.B7s && !l.Futura
	if p.plain && l.Connected {
		p.head.lookForNodes()
	}
	m, reports := p.member, p.offer.dialect == protocol.DialectFutura
	p.mu.Unlock()
	p.head.standings.change()
	if !broke || m == nil || reports {
		return
	}
	switch orders, _ := m.load(); {
	case orders > 0:
		p.lose(m, "the connection to a node of b7s ended while it had work")
	case len(m.offer.labels) > 0:
		m.leave() // it may come back with others
	}
}

// meet takes whether the peer is connected now. A host need not tell of a connection that
// ends soon after it began, and what the peer sent over it is taken later.
func (p *peer) meet(connected bool) {
	p.mu.Lock()
	known := p.connected
	if connected {
		p.connected = true
	}
	l := p2p.Peer{ID: p.id, B7s: p.plain, Session: p.session}
	p.mu.Unlock()
	if known && !connected {
		p.observe(l)
	}
}

// hear notes a sign of life, and how many messages more are being answered: while the head
// is at one, it is not the peer that is silent.
func (p *peer) hear(more int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = p.head.clock.Now()
	p.answering += more
}

// excuse counts a time in which the head itself was stopped as none that the peer was silent
// in: what it sent then is still to be read.
func (p *peer) excuse(now time.Time, d time.Duration) {
	p.mu.Lock()
	p.heard, p.away = clock.Earlier(p.heard.Add(d), now), clock.Earlier(p.away.Add(d), now)
	m := p.member
	p.mu.Unlock()
	if m == nil {
		return
	}
	for _, o := range m.present() {
		o.excuse(now, d)
	}
}

// look buries the membership of a peer that is lost, and forgets a peer without one.
func (p *peer) look(now time.Time) {
	grace := p.head.options.Grace
	p.mu.Lock()
	m, gone, silent := p.member, !p.connected && now.Sub(p.away) >= grace, now.Sub(p.heard)
	reports := p.offer.dialect == protocol.DialectFutura
	if p.answering > 0 || len(p.transfers) > 0 {
		silent = 0
	}
	p.mu.Unlock()
	switch {
	case m == nil && gone:
		p.head.forget(p)
	case m == nil:
	case gone:
		p.lose(m, fmt.Sprintf("the peer has been away for %v", grace))
	case reports && m.busySince(now) >= grace && silent >= grace:
		p.lose(m, fmt.Sprintf("the peer has work and has been silent for %v", silent.Round(time.Millisecond)))
	case !reports && m.isOverdue(now):
		p.lose(m, "the peer did not answer an order in its time")
	case reports:
		m.dropUnheard(now, unheardGraces*grace)
	}
}

// unheardGraces is after how many graces an order of which a peer reports nothing, though
// it does of others, is taken back.
const unheardGraces = 4

func (p *peer) describe() Peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := Peer{
		ID: p.id, Name: p.offer.name, Dialect: p.offer.dialect.String(), Connected: p.connected,
		Slots: p.offer.capacity.Slots, Heard: p.heard,
		Done: p.done.Load(), Failed: p.failed.Load(), Refused: p.refused.Load(),
		Disagreed: p.disagreed.Load(), TakenBack: p.takenBack.Load(), Transfers: p.moving(),
	}
	now := p.head.clock.Now()
	trust, latency := p.score.now(now)
	d.Score, d.Latency = math.Round(trust*100)/100, latency
	if p.member != nil {
		d.Limit, _ = p.score.limit(now, d.Slots)
		d.Worker = string(p.member.worker.ID())
		d.Orders, d.Items = p.member.load()
	} else {
		d.Reason = p.reason
	}
	return d
}
