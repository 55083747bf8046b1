package peerhead

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
)

var errSimAway = errors.New("it can't be reached")

// Bounds of the network.
const (
	simHang     = 15 * time.Second // until a message that was lost is an error
	simCallTime = 75 * time.Second
	simMemory   = 200 // orders that can be forged
)

// simEnd is a process, as the network sees it.
type simEnd interface {
	// lives ends with the process.
	lives() context.Context
	// connected tells of a connection, in the order of what happened.
	connected(other string, up bool, session uint64)
	called(ctx context.Context, from string, message []byte) []byte
	received(ctx context.Context, from string, message []byte, published bool)
	blob(ctx context.Context, from, id string) (io.ReadSeekCloser, int64, error)
}

// simNet is a network in memory. It loses, delays and repeats what it carries, in one
// direction or in both, and tells of connections late. Ids of heads begin with H.
type simNet struct {
	w *simWorld

	mu     sync.Mutex
	ends   map[string]*simSeat
	links  map[simPair]*simLink
	orders []simOrder
}

// simSeat is a process in the network.
type simSeat struct {
	end     simEnd
	notices chan func()
}

type simPair struct{ head, peer string }

// simLink is what is between a head and a peer.
type simLink struct {
	cut, up bool
	black   bool // what is sent is lost, and nobody is told
	session uint64
}

// simOrder is an order that a peer was sent.
type simOrder struct {
	to string
	m  *protocol.WorkOrderBatch
}

func newSimNet(w *simWorld) *simNet {
	return &simNet{w: w, ends: map[string]*simSeat{}, links: map[simPair]*simLink{}}
}

func pairOf(a, b string) simPair {
	if strings.HasPrefix(a, "H") {
		return simPair{a, b}
	}
	return simPair{b, a}
}

// appear connects a process with all that are there.
func (n *simNet) appear(id string, end simEnd) {
	seat := &simSeat{end: end, notices: make(chan func(), 10_000)}
	n.w.spawn(func() {
		for {
			select {
			case notice := <-seat.notices:
				n.w.pass(end.lives(), n.w.delay(2*time.Second))
				notice()
			case <-end.lives().Done():
				return
			}
		}
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ends[id] = seat
	n.refresh()
}

// disappear ends the connections of a process.
func (n *simNet) disappear(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ends, id)
	n.refresh()
}

// refresh connects and disconnects. It is called under mu.
func (n *simNet) refresh() {
	for _, p := range n.pairs() {
		l := n.links[p]
		head, peer := n.ends[p.head], n.ends[p.peer]
		up := head != nil && peer != nil && !l.cut
		if up == l.up {
			continue
		}
		if l.up = up; up {
			l.session++
		}
		session := l.session
		if head != nil {
			head.notices <- func() { head.end.connected(p.peer, up, session) }
		}
		if peer != nil {
			peer.notices <- func() { peer.end.connected(p.head, up, session) }
		}
	}
}

func (n *simNet) pairs() []simPair {
	for a := range n.ends {
		for b := range n.ends {
			if strings.HasPrefix(a, "H") && !strings.HasPrefix(b, "H") && n.links[simPair{a, b}] == nil {
				n.links[simPair{a, b}] = &simLink{}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(n.links), func(a, b simPair) int {
		return strings.Compare(a.head+" "+a.peer, b.head+" "+b.peer)
	})
}

// disturb cuts a connection, or has it lose everything, for a while.
func (n *simNet) disturb() {
	n.mu.Lock()
	defer n.mu.Unlock()
	pairs := n.pairs()
	if len(pairs) == 0 {
		return
	}
	l := n.links[pairs[n.w.draw(len(pairs))]]
	until := time.Duration(1+n.w.draw(20_000)) * time.Millisecond
	if n.w.draw(3) == 0 {
		l.black = true
	} else {
		l.cut = true
	}
	n.w.logf("a connection is cut (%t) or black (%t) for %v", l.cut, l.black, until)
	n.refresh()
	n.w.spawn(func() {
		n.w.pass(n.w.over, until)
		n.mu.Lock()
		defer n.mu.Unlock()
		l.black, l.cut = false, false
		n.refresh()
	})
}

// heal ends all faults.
func (n *simNet) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.links {
		l.black, l.cut = false, false
	}
	n.refresh()
}

// way returns where a message goes over a connection, nil if there is none. A session of 0
// is any.
func (n *simNet) way(from, to string, session uint64) (end simEnd, now uint64, black bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l, seat := n.links[pairOf(from, to)], n.ends[to]
	if l == nil || !l.up || seat == nil || session != 0 && session != l.session {
		return nil, 0, false
	}
	return seat.end, l.session, l.black
}

func (n *simNet) isConnected(from, to string) bool {
	end, _, _ := n.way(from, to, 0)
	return end != nil
}

// carry brings a message to where it goes, and perhaps again later. It returns nil if the
// message is lost.
func (n *simNet) carry(ctx context.Context, from, to string, deliver func(context.Context, simEnd)) (simEnd, uint64) {
	_, session, _ := n.way(from, to, 0)
	if session == 0 {
		return nil, 0
	}
	n.w.pass(ctx, n.w.delay(300*time.Millisecond))
	end, _, black := n.way(from, to, session)
	if end == nil || ctx.Err() != nil {
		return nil, 0
	}
	if black || n.w.chance(0.04) {
		n.w.count(&n.w.report.Lost)
		n.w.pass(ctx, simHang)
		return nil, 0
	}
	if n.w.chance(0.06) {
		n.w.count(&n.w.report.Repeated)
		n.w.spawn(func() {
			n.w.pass(n.w.over, n.w.delay(30*time.Second))
			if again, _, _ := n.way(from, to, 0); again != nil {
				deliver(again.lives(), again)
			}
		})
	}
	return end, session
}

// call carries a message and its answer.
func (n *simNet) call(ctx context.Context, from, to string, message []byte) ([]byte, error) {
	n.note(to, message)
	ctx, cancel := context.WithTimeout(ctx, simCallTime)
	defer cancel()
	end, session := n.carry(ctx, from, to, func(ctx context.Context, end simEnd) { end.called(ctx, from, message) })
	if end == nil {
		return nil, errors.Join(errSimAway, ctx.Err())
	}
	answers := make(chan []byte, 1)
	n.w.spawn(func() {
		handling, done := context.WithTimeout(end.lives(), time.Minute)
		defer done()
		answers <- end.called(handling, from, message)
	})
	select {
	case answer := <-answers:
		n.w.pass(ctx, n.w.delay(300*time.Millisecond))
		if now, _, black := n.way(from, to, session); now == nil || black || n.w.chance(0.04) {
			n.w.count(&n.w.report.Unanswered)
			return nil, errSimAway
		}
		return answer, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// send carries a message that nobody answers.
func (n *simNet) send(ctx context.Context, from, to string, message []byte, published bool) error {
	end, _ := n.carry(ctx, from, to, func(ctx context.Context, end simEnd) { end.received(ctx, from, message, published) })
	if end == nil {
		return errors.Join(errSimAway, ctx.Err())
	}
	n.w.spawn(func() { end.received(end.lives(), from, message, published) })
	return nil
}

// publish sends a message to all that are connected.
func (n *simNet) publish(from string, message []byte) {
	n.mu.Lock()
	ids := slices.Sorted(maps.Keys(n.ends))
	n.mu.Unlock()
	for _, id := range ids {
		if !strings.HasPrefix(id, "H") {
			n.w.spawn(func() { _ = n.send(n.w.over, from, id, message, true) })
		}
	}
}

// fetch carries a blob, or a part of it and an error.
func (n *simNet) fetch(ctx context.Context, from, to, id string, have io.Reader, w io.Writer) error {
	end, session, _ := n.way(from, to, 0)
	if end == nil {
		return errSimAway
	}
	content, size, err := end.blob(end.lives(), from, id)
	if err != nil {
		return err
	}
	defer content.Close()
	done := int64(0)
	if have != nil {
		if done, err = io.Copy(io.Discard, have); err == nil {
			_, err = content.Seek(done, io.SeekStart)
		}
		if err != nil {
			return err
		}
	}
	piece := make([]byte, 256<<10)
	for done < size {
		n.w.pass(ctx, n.w.delay(200*time.Millisecond))
		if now, _, black := n.way(from, to, session); now == nil || black || n.w.chance(0.05) || ctx.Err() != nil {
			n.w.count(&n.w.report.Broken)
			return errSimAway
		}
		read, err := content.Read(piece)
		if _, failed := w.Write(piece[:read]); failed != nil {
			return failed
		}
		if done += int64(read); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}

// note keeps orders that were sent.
func (n *simNet) note(to string, message []byte) {
	if strings.HasPrefix(to, "H") {
		return
	}
	m, err := protocol.Decode(message)
	if err != nil {
		n.w.flaw("a head sent what can't be read: %v", err)
		return
	}
	if o, ok := m.(*protocol.WorkOrderBatch); ok {
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.orders) < simMemory {
			n.orders = append(n.orders, simOrder{to, o})
		} else {
			n.orders[n.w.draw(simMemory)] = simOrder{to, o}
		}
	}
}

// sizeOf is how many items an order has, 0 for an unknown one.
func (n *simNet) sizeOf(chunk string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.orders {
		if o.m.ChunkID == chunk {
			return len(o.m.Items)
		}
	}
	return 0
}

// forged is what no item has as its result.
const forged = "forged"

// forge has a peer say how items ended that it was not given, or without their MAC.
func (n *simNet) forge() {
	n.mu.Lock()
	if len(n.orders) == 0 {
		n.mu.Unlock()
		return
	}
	o, heads, from := n.orders[n.w.draw(len(n.orders))], []simEnd(nil), ""
	for _, id := range slices.Sorted(maps.Keys(n.ends)) {
		if strings.HasPrefix(id, "H") {
			heads = append(heads, n.ends[id].end)
		} else if id != o.to && from == "" || n.w.draw(2) == 0 {
			from = id
		}
	}
	n.mu.Unlock()
	if from == "" {
		return
	}
	r := &protocol.WorkOrderBatchResponse{RequestID: o.m.RequestID, ChunkID: o.m.ChunkID, OrderMAC: o.m.OrderMAC}
	for i, item := range o.m.Items {
		r.Outcomes = append(r.Outcomes, protocol.Outcome{Index: i, Code: protocol.CodeOK, Value: []byte(forged)})
		r.Items = append(r.Items, protocol.OrderItem{ID: item.ID, Attempt: item.Attempt})
	}
	if from == o.to {
		r.OrderMAC = "A" + r.OrderMAC[1:]
		if r.OrderMAC == o.m.OrderMAC {
			r.OrderMAC = "B" + r.OrderMAC[1:]
		}
	}
	if n.w.draw(2) == 0 {
		r.Items = nil
	}
	data, err := protocol.Encode(r, protocol.DialectFutura)
	if err != nil {
		n.w.flaw("%v", err)
		return
	}
	n.w.count(&n.w.report.Forged)
	for _, h := range heads {
		n.w.spawn(func() { h.called(h.lives(), from, data) })
	}
}

// pass lets virtual time pass, until ctx ends.
func (w *simWorld) pass(ctx context.Context, d time.Duration) {
	if d > 0 {
		_ = clock.Sleep(ctx, clock.Real{}, d)
	}
}

// simHeadNet is the network of a head.
type simHeadNet struct {
	net *simNet
	id  string
}

// Send implements Network.
func (h simHeadNet) Send(ctx context.Context, to PeerID, message []byte) error {
	return h.net.send(ctx, h.id, string(to), message, false)
}

// Call implements Network.
func (h simHeadNet) Call(ctx context.Context, to PeerID, message []byte) ([]byte, error) {
	return h.net.call(ctx, h.id, string(to), message)
}

// Publish implements Network.
func (h simHeadNet) Publish(_ context.Context, _ string, message []byte) error {
	h.net.publish(h.id, message)
	return nil
}

// Connected implements Network.
func (h simHeadNet) Connected(id PeerID) bool { return h.net.isConnected(h.id, string(id)) }

// FetchBlob implements Network.
func (h simHeadNet) FetchBlob(ctx context.Context, from PeerID, id string, w io.Writer, o p2p.FetchOptions) error {
	return h.net.fetch(ctx, h.id, string(from), id, o.Have, w)
}
