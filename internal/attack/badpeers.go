package attack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
)

// badPeer is a worker that takes what it is given, and does not do it.
type badPeer struct {
	name string
	host *p2p.Host
	head p2p.PeerID
	over context.Context // ends with the attack
	// takes answers an order.
	takes func(p *badPeer, o *protocol.WorkOrderBatch) protocol.Code

	lane   sync.Mutex // it has one slot
	orders atomic.Int64
}

// Times of bad peers.
const (
	// greetEvery is how often they say hello: a head takes them for lost otherwise.
	greetEvery = 500 * time.Millisecond
	// lateBy is how long a slow one takes to say that it has an order.
	lateBy = 20 * time.Second
	// laneTime is how long one with a single slot needs for an order.
	laneTime = time.Minute
	// orderPatience is how long an attack waits until each of them has had an order.
	orderPatience = 3 * time.Minute
)

// badWays are the ways of bad peers, which are those of the tests of package peerhead.
var badWays = []struct {
	name  string
	takes func(p *badPeer, o *protocol.WorkOrderBatch) protocol.Code
}{
	{"wrong status", func(*badPeer, *protocol.WorkOrderBatch) protocol.Code { return protocol.CodeError }},
	{"silence", func(*badPeer, *protocol.WorkOrderBatch) protocol.Code { return protocol.CodeAccepted }},
	{"refusals", func(p *badPeer, o *protocol.WorkOrderBatch) protocol.Code {
		go p.refuse(o)
		return protocol.CodeAccepted
	}},
	{"slots", func(p *badPeer, o *protocol.WorkOrderBatch) protocol.Code {
		go func() {
			p.lane.Lock()
			defer p.lane.Unlock()
			if p.wait(laneTime) {
				p.refuse(o)
			}
		}()
		return protocol.CodeAccepted
	}},
	{"slow", func(p *badPeer, _ *protocol.WorkOrderBatch) protocol.Code {
		p.wait(lateBy)
		return protocol.CodeAccepted
	}},
}

// BadPeers has workers join the head that say that they have all slots there are: sets of five, of which one answers
// orders by an error, one takes them and says nothing, one gives everything back, one has a single slot and tells
// nothing of it, and one takes long to take an order. It returns once each of them has had an order: somebody else has
// to submit.
func BadPeers(ctx context.Context, t *Target, sets int) (func(), error) {
	over, end := context.WithCancel(context.Background())
	var greeting sync.WaitGroup
	var all []*badPeer
	leave := func() {
		end()
		for _, p := range all {
			_ = p.host.Close() // nothing depends on it
		}
		greeting.Wait()
	}
	for i := range sets * len(badWays) {
		way := badWays[i%len(badWays)]
		host, err := p2p.Open(ctx, p2p.Options{Listen: []string{}})
		if err != nil {
			return leave, err
		}
		p := &badPeer{name: way.name, host: host, over: over, takes: way.takes}
		all = append(all, p)
		host.OnCall(p.answer)
		if err := host.Start(); err != nil {
			return leave, err
		}
		if p.head, err = host.Connect(ctx, t.Peers); err != nil {
			return leave, err
		}
		if err := p.greet(ctx); err != nil {
			return leave, err
		}
		greeting.Go(func() {
			for p.wait(greetEvery) {
				_ = p.greet(over) // the head may have thrown it out
			}
		})
	}
	until, cancel := context.WithTimeout(ctx, orderPatience)
	defer cancel()
	for _, p := range all {
		if err := p.awaitOrder(until); err != nil {
			return leave, err
		}
	}
	return leave, nil
}

// greet offers all slots there are.
func (p *badPeer) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, messageTime)
	defer cancel()
	answer, err := p.host.Call(ctx, p.head, encoded(&protocol.Hello{
		Incarnation: "0123456789abcdef", Functions: []string{"wasm:*"},
		Capacity: protocol.Capacity{Slots: math.MaxInt32, CPUMillis: 1 << 20, RAMBytes: 1 << 40},
	}))
	if err != nil {
		return err
	}
	m, err := protocol.Decode(answer)
	if r, is := m.(*protocol.HelloResponse); err == nil && (!is || r.Code != protocol.CodeOK) {
		err = errors.New("the head does not take the peer")
	}
	return err
}

// answer takes what the head sends.
func (p *badPeer) answer(_ context.Context, _ p2p.PeerID, message []byte) []byte {
	m, err := protocol.Decode(message)
	if err != nil {
		return nil
	}
	code := protocol.CodeOK
	if o, is := m.(*protocol.WorkOrderBatch); is {
		p.orders.Add(1)
		code = p.takes(p, o)
	}
	return encoded(&protocol.Ack{Code: code})
}

// refuse gives all items of an order back.
func (p *badPeer) refuse(o *protocol.WorkOrderBatch) {
	r := &protocol.WorkOrderBatchResponse{RequestID: o.RequestID, ChunkID: o.ChunkID, OrderMAC: o.OrderMAC}
	for i := range o.Arguments {
		r.Outcomes = append(r.Outcomes, protocol.Outcome{Index: i, Code: protocol.CodeUnavailable, Message: "not here"})
	}
	ctx, cancel := context.WithTimeout(p.over, messageTime)
	defer cancel()
	_, _ = p.host.Call(ctx, p.head, encoded(r)) // the head takes the order back otherwise
}

// wait reports whether the attack goes on after so long.
func (p *badPeer) wait(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-p.over.Done():
		return false
	}
}

// awaitOrder waits until the peer has had an order.
func (p *badPeer) awaitOrder(ctx context.Context) error {
	for p.orders.Load() == 0 {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the peer of %q had no order: the attack tests nothing", p.name)
		}
	}
	return nil
}
