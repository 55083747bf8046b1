package peerhead

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/workers"
)

var (
	errUnheard  = errors.New("the peer reports nothing of the order")
	errBusy     = errors.New("the peer takes no more")
	errReturned = errors.New("the peer gave the item back")
)

// order is a chunk of calls that a peer has.
type order struct {
	member *member
	id     string
	calls  []*call
	items  []protocol.OrderItem
	mac    string
	begun  time.Time
	due    time.Time // for a peer that reports nothing; zero for others

	mu      sync.Mutex
	heard   time.Time
	spoken  bool   // the peer has said something of it
	lasted  bool   // what runs of it has counted as answers
	ended   []bool // was given its outcome, or needs none
	acks    []<-chan struct{}
	left    int
	stops   []int // places that the peer is to stop, and was not told of
	telling bool
	asked   map[int]askedBack // places that the peer is to give back
}

// An order waits so long for more calls: those of one claim start together. While the
// peer has work, more cost it nothing.
const (
	gatherIdle = 200 * time.Microsecond
	gatherBusy = 2 * time.Millisecond
)

// send composes orders of what is called and has the peer take them, until the
// membership ends.
func (m *member) send() {
	var placing sync.WaitGroup
	defer placing.Wait()
	var waiting []*call
	for {
		if len(waiting) == 0 {
			select {
			case c := <-m.calls:
				waiting = append(waiting, c)
			case <-m.ctx.Done():
				return
			}
		}
		waiting = m.gather(waiting)
		select {
		case m.window <- struct{}{}:
		case <-m.ctx.Done():
			return
		}
		var o *order
		if o, waiting = m.compose(waiting); o == nil {
			<-m.window
			continue
		}
		m.put(o)
		m.watchTrial(o)
		placing.Go(func() { m.place(o) })
	}
}

// gather adds calls that come within a moment.
func (m *member) gather(waiting []*call) []*call {
	patience := gatherIdle
	if orders, _ := m.load(); orders > 1 {
		patience = gatherBusy
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for len(waiting) < m.chunk() {
		select {
		case c := <-m.calls:
			waiting = append(waiting, c)
		case <-timer.C:
			return waiting
		case <-m.ctx.Done():
			return waiting
		}
	}
	return waiting
}

func (m *member) chunk() int {
	most := m.peer.head.options.MaxChunk
	if m.offer.maxChunk > 0 {
		most = min(most, m.offer.maxChunk)
	}
	if narrow := int(m.narrow.Load()); narrow > 0 {
		most = min(most, narrow)
	}
	return most
}

// compose makes an order of the first call and those of its group, and returns the rest.
func (m *member) compose(waiting []*call) (*order, []*call) {
	h := m.peer.head
	o := &order{member: m, id: uuid.NewString()}
	o.mu.Lock() // a call may be withdrawn once it has joined
	defer o.mu.Unlock()
	var rest []*call
	seen := map[string]bool{}
	size := 0
	for _, c := range waiting {
		if !m.fits(o, c, seen, &size) {
			rest = append(rest, c)
			continue
		}
		if c.join(o, len(o.calls)) {
			o.calls = append(o.calls, c)
			o.items = append(o.items, m.itemOf(c))
		}
	}
	if len(o.calls) == 0 {
		return nil, rest
	}
	o.left, o.ended, o.acks = len(o.calls), make([]bool, len(o.calls)), make([]<-chan struct{}, len(o.calls))
	o.begun = h.clock.Now()
	o.heard = o.begun
	o.mac = orderMAC(h.options.Key, m.peer.id, o.id, o.items)
	if m.offer.dialect != protocol.DialectFutura {
		n := time.Duration(len(o.calls))
		o.due = o.begun.Add(h.options.OrderTime + n*min(o.calls[0].Timeout, protocol.MaxTime/n))
	}
	return o, rest
}

// fits reports whether a call may be in an order with those that are in it.
func (m *member) fits(o *order, c *call, seen map[string]bool, size *int) bool {
	const fixed = 200 // the rest of an item
	n := fixed + len(c.Args)
	for _, a := range c.Argv {
		n += len(a)
	}
	for name, value := range c.trace() {
		n += len(name) + len(value)
	}
	switch {
	case len(o.calls) == 0:
	case len(o.calls) >= m.chunk() || o.calls[0].group != c.group || *size+n > m.peer.head.options.MaxOrder:
		return false
	}
	if m.offer.dialect != protocol.DialectFutura {
		id := c.itemID()
		if seen[id] {
			return false // nodes of b7s answer equal items once
		}
		seen[id] = true
	}
	*size += n
	return true
}

func (m *member) itemOf(c *call) protocol.OrderItem {
	item := protocol.OrderItem{ID: c.ID.String(), Attempt: c.Attempt, TimeoutMS: c.Timeout.Milliseconds()}
	if c.Timeout > 0 {
		item.TimeoutMS = max(item.TimeoutMS, 1)
	}
	if cid, _ := c.module(); cid == "" || len(c.Args) > 0 {
		item.Codec, item.Args = c.Codec, c.Args
	}
	item.Trace = c.trace()
	return item
}

// message is the order on the wire.
func (o *order) message() *protocol.WorkOrderBatch {
	first, d := o.calls[0], o.member.offer.dialect
	w := &protocol.WorkOrderBatch{Template: first.template(d), RequestID: o.id, ChunkID: o.id}
	for _, c := range o.calls {
		argv := c.Argv
		if argv == nil {
			argv = []string{}
		}
		w.Arguments = append(w.Arguments, argv)
	}
	if d == protocol.DialectFutura {
		w.Module, _ = first.module()
		w.OrderMAC, w.Priority, w.Items = o.mac, first.Priority, o.items
		if first.group.limit > 0 {
			w.RequestID, w.Concurrency = requestOf(first.group.owner), uint64(first.group.limit)
		}
	} else {
		w.Carrier = o.sharedTrace()
	}
	return w
}

// requestOf is the request id of all orders with futures of an owner, by which a peer keeps
// the owner's limit.
func requestOf(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:16])
}

// Waits between attempts to reach a peer.
const (
	placeMin = 50 * time.Millisecond
	placeMax = 2 * time.Second
)

// place has the peer take an order. It tries again until it knows that the peer has it
// or refuses it, or until the peer is lost: a chunk that a peer has got is not taken twice.
func (m *member) place(o *order) {
	data, err := protocol.Encode(o.message(), m.offer.dialect)
	if err != nil {
		if errors.Is(err, protocol.ErrLimit) {
			m.divide(o, err)
			return
		}
		m.peer.head.rare.Warn("an order can't be sent to a peer", "peer", m.peer.id, "error", err)
		m.giveUp(o, err)
		return
	}
	if m.offer.dialect != protocol.DialectFutura {
		m.placeB7S(o, data)
		return
	}
	for wait := placeMin; ; wait = min(2*wait, placeMax) {
		answer, err := m.call(m.ctx, data)
		ack, _ := answer.(*protocol.Ack)
		switch {
		case m.ctx.Err() != nil:
			return
		case errors.Is(err, p2p.ErrTooLarge):
			m.divide(o, err)
			return
		case err == nil && ack != nil && (ack.Code == protocol.CodeAccepted || ack.Code == protocol.CodeConflict):
			o.logTaken()
			return
		case err == nil && ack != nil && ack.Code == protocol.CodeUnavailable:
			m.peer.fault(1)
			m.giveUp(o, errBusy)
			return
		case err == nil:
			m.peer.fault(1)
			m.giveUp(o, refusal(answer))
			return
		}
		m.peer.head.options.Logger.Debug("a peer can't be reached; retrying", "peer", m.peer.id, "error", err)
		if o.open() == 0 || clock.Sleep(m.ctx, m.peer.head.clock, wait) != nil {
			m.remove(o)
			return
		}
	}
}

// divide has the calls of an order that the network does not carry be claimed again, for smaller orders.
func (m *member) divide(o *order, err error) {
	if n := len(o.calls) / 2; n > 0 {
		m.narrow.Store(int64(min(n, m.chunk())))
		m.giveUp(o, fmt.Errorf("%w: the order is too large: %w", workers.ErrNotBegun, err))
		return
	}
	m.peer.head.rare.Warn("an order can't be sent to a peer", "peer", m.peer.id, "error", err)
	m.giveUp(o, err)
}

// giveUp gives back an order that the peer did not take.
func (m *member) giveUp(o *order, err error) {
	o.fail(err)
	m.remove(o)
}

// call sends a message of Futura's and returns the answer.
func (m *member) call(ctx context.Context, data []byte) (protocol.Message, error) {
	answer, err := m.peer.head.options.Network.Call(ctx, m.peer.id, data)
	if err != nil {
		return nil, err
	}
	return protocol.Decode(answer)
}

// silence returns for how long nothing was heard of the order.
func (o *order) silence(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return now.Sub(o.heard)
}

func (o *order) hear(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.heard, o.spoken = now, true
}

// excuse is that of its peer.
func (o *order) excuse(now time.Time, d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.heard = clock.Earlier(o.heard.Add(d), now)
	if !o.due.IsZero() {
		o.due = o.due.Add(d)
	}
}

// open is how many items have not ended.
func (o *order) open() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.left
}

// end ends an item, and reports whether it had not ended before.
func (o *order) end(index int, out workers.RemoteOutcome, err error) bool {
	o.mu.Lock()
	first := !o.ended[index]
	if first {
		o.ended[index] = true
		o.left--
	}
	o.mu.Unlock()
	if first {
		o.calls[index].end(out, err)
	}
	return first
}

// fail ends what has not ended, without an outcome.
func (o *order) fail(err error) {
	for i := range o.calls {
		o.end(i, workers.RemoteOutcome{}, err)
	}
}

// withdraw ends an item whose outcome is not wanted, and has the peer stop it. What is
// withdrawn within a moment is told together.
func (o *order) withdraw(index int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended[index] {
		return
	}
	o.ended[index] = true
	o.left--
	if o.stops = append(o.stops, index); o.telling {
		return
	}
	o.telling = true
	h := o.member.peer.head
	h.clock.AfterFunc(h.clock.Now().Add(stopTime), func() { o.member.beside.run(o.tellStops) })
}

const stopTime = 5 * time.Millisecond

// tellStops has the peer stop items, and forgets an order of which nothing is left.
func (o *order) tellStops() {
	o.mu.Lock()
	stops, left := o.stops, o.left
	o.stops, o.telling = nil, false
	o.mu.Unlock()
	m := o.member
	if m.offer.dialect == protocol.DialectFutura {
		data, err := protocol.Encode(&protocol.CancelOrder{ChunkID: o.id, Indexes: stops}, protocol.DialectFutura)
		if err == nil {
			_, err = m.call(m.ctx, data)
		}
		if err != nil && m.ctx.Err() == nil {
			m.peer.head.options.Logger.Debug("a peer was not told to stop", "peer", m.peer.id, "chunk", o.id, "error", err)
		}
	}
	if left == 0 {
		m.remove(o)
	}
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
