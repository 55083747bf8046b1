package peerhead

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// errLost ends the calls of a peer that was lost.
var errLost = errors.New("the peer was lost")

// member is one membership of a peer: a worker of the cluster whose functions the peer
// runs.
type member struct {
	peer   *peer
	offer  offer
	worker *workers.Worker
	stop   context.CancelFunc // lets the worker drain
	done   chan struct{}      // closed when the worker has ended
	ctx    context.Context    // ends after the worker, or when the peer is lost
	cancel context.CancelFunc
	beside beside

	calls  chan *call
	window chan struct{} // has one element for each order under way

	narrow  atomic.Int64 // how many items the network carries in an order, 0 for any number
	moved   atomic.Int64 // when a call last began or ended, in nanoseconds
	mu      sync.Mutex
	orders  map[string]*order
	unacked map[layout.ID]chan struct{}
	limit   int // of items at a time, by the peer's score
	onTrial bool
	stands  standing
	resting time.Time // until when it is given nothing
}

// Bounds of a membership.
const (
	windowFutura = 64 // orders of one peer that are under way
	windowB7S    = 1
	joinTime     = 30 * time.Second
	reapTime     = 10 * time.Second // else the head could not end while the store does not answer
	// What a node of b7s offers, which does not say it.
	b7sRAM = 4 << 30
)

// begin registers the peer as a worker.
func (p *peer) begin(ctx context.Context, o offer) (*member, error) {
	h := p.head
	h.mu.Lock()
	if h.ctx == nil || h.ended {
		h.mu.Unlock()
		return nil, ErrClosed
	}
	base := context.WithoutCancel(h.ctx)
	h.lives.Add(1)
	h.mu.Unlock()
	m := &member{
		peer: p, offer: o, done: make(chan struct{}), calls: make(chan *call), window: make(chan struct{}, windowFutura),
		orders: map[string]*order{}, unacked: map[layout.ID]chan struct{}{},
	}
	if o.dialect != protocol.DialectFutura {
		m.window = make(chan struct{}, windowB7S)
	}
	m.ctx, m.cancel = context.WithCancel(base)
	options := workers.Options{
		Name: o.name, Labels: o.labels, Queues: h.options.Queues, Slots: o.capacity.Slots, CPU: o.capacity.CPUMillis,
		RAM: o.capacity.RAMBytes, GPU: o.capacity.GPUMillis, Remote: m, Logger: h.options.Logger.With("peer", p.id),
		Fleet: h.fleet,
	}
	var err error
	if m.worker, err = workers.FromCluster(h.options.Cluster, options); err != nil {
		h.lives.Done()
		m.cancel()
		return nil, err
	}
	m.limit = o.capacity.Slots
	m.settleLimit()
	h.lookForWorkers()
	var running context.Context
	running, m.stop = context.WithCancel(base)
	go m.live(running)
	return m, m.awaitReady(ctx)
}

// live runs the worker to its end.
func (m *member) live(ctx context.Context) {
	defer m.peer.head.lives.Done()
	m.beside.run(m.send)
	err := m.worker.Run(ctx)
	if err != nil {
		m.peer.head.options.Logger.Warn("the worker of a peer has ended", "peer", m.peer.id, "error", err)
	}
	m.cancel() // before unset, for greet
	m.peer.unset(m)
	m.stop()
	m.beside.end()
	close(m.done)
}

// beside is what a membership does beside the calls of its worker.
type beside struct {
	mu    sync.Mutex
	ended bool
	all   sync.WaitGroup
}

// run calls f in a goroutine, unless end was called.
func (b *beside) run(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.all.Go(f)
	}
}

// end returns when all goroutines have ended.
func (b *beside) end() {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	b.all.Wait()
}

func (m *member) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	select {
	case <-m.worker.Ready():
		return nil
	case <-m.done:
		return ErrClosed
	case <-ctx.Done():
		m.leave()
		return fmt.Errorf("the peer could not be registered in time: %w", ctx.Err())
	}
}

// leave lets what the peer runs end for a while, and gives back the rest.
func (m *member) leave() { m.stop() }

func (m *member) isOver() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// PeerID implements workers.Peer.
func (m *member) PeerID() string { return string(m.peer.id) }

// forceReap ends the membership as a death.
func (m *member) forceReap(why string) {
	h := m.peer.head
	h.rare.Warn("a peer is lost; its futures go back", "peer", m.peer.id, "worker", m.worker.ID(), "reason", why)
	m.worker.Abandon()
	m.cancel()
	if id := m.worker.ID(); id != "" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), reapTime)
		defer cancel()
		if _, err := h.options.Cluster.ForceReap(ctx, id); err != nil {
			h.options.Logger.Warn("the futures of a lost peer were not taken back; a janitor does it", "peer", m.peer.id,
				"error", err)
		}
	}
}

// runs reports whether the peer offers a function.
func (m *member) runs(function string) bool {
	info := layout.WorkerInfo{Functions: m.offer.functions}
	return info.Runs(function)
}

// Functions implements workers.Remote.
func (m *member) Functions() []string { return m.offer.functions }

// Serial implements workers.Serial: nodes of b7s run the items of an order one after the
// other, and have one order at a time.
func (m *member) Serial() bool { return m.offer.dialect != protocol.DialectFutura }

// KeepsLimits implements workers.Limiter: peers of Futura say whether they do.
func (m *member) KeepsLimits() bool { return m.offer.limits }

// RunRemote implements workers.Remote.
func (m *member) RunRemote(ctx context.Context, c workers.RemoteCall) (workers.RemoteOutcome, error) {
	h := m.peer.head
	if h.options.Verify.on() {
		return m.runVerified(ctx, c)
	}
	if out, found := h.cache.take(c.ID, c.Attempt); found && h.serves(&out) {
		return out, nil
	}
	return m.run(ctx, c, nil)
}

// run has the peer run an attempt. One of several that are compared is none whose end is
// stored: over is closed when all of them are over.
func (m *member) run(ctx context.Context, c workers.RemoteCall, over <-chan struct{}) (workers.RemoteOutcome, error) {
	m.move()
	defer m.move()
	item, err := newCall(c, m.offer.dialect)
	if err != nil {
		m.peer.head.rare.Warn("a future can't be sent to a peer; rejecting it",
			"peer", m.peer.id, "future", c.ID, "error", err)
		return workers.RemoteOutcome{}, err
	}
	if m.offer.limits && c.Parallel > 0 {
		item.group.owner, item.group.limit = c.Owner, c.Parallel
	}
	item.over = over
	select {
	case m.calls <- item:
	case <-ctx.Done():
		return workers.RemoteOutcome{}, context.Cause(ctx)
	case <-m.ctx.Done():
		return workers.RemoteOutcome{}, errLost
	}
	select {
	case end := <-item.done:
		return end.out, end.err
	case <-ctx.Done():
		item.withdraw()
		return workers.RemoteOutcome{}, context.Cause(ctx)
	case <-m.ctx.Done():
		return workers.RemoteOutcome{}, errLost
	}
}

// Acknowledge implements workers.Remote.
func (m *member) Acknowledge(ids []layout.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		if acknowledged := m.unacked[id]; acknowledged != nil {
			close(acknowledged)
			delete(m.unacked, id)
		}
	}
}

// expectAck returns what is closed when the end of a future is stored.
func (m *member) expectAck(id layout.ID) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unacked[id] == nil {
		m.unacked[id] = make(chan struct{})
	}
	return m.unacked[id]
}

func (m *member) order(chunk string) *order {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.orders[chunk]
}

func (m *member) put(o *order) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orders[o.id] = o
}

func (m *member) remove(o *order) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.orders[o.id] == o {
		delete(m.orders, o.id)
		<-m.window
	}
}

func (m *member) present() []*order {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*order, 0, len(m.orders))
	for _, o := range m.orders {
		all = append(all, o)
	}
	return all
}

// load returns how many orders the peer has, and how many of their items have not ended.
func (m *member) load() (orders, items int) {
	for _, o := range m.present() {
		orders++
		items += o.open()
	}
	return orders, items
}

// busySince returns for how long the peer has had an order, 0 if it has none.
func (m *member) busySince(now time.Time) time.Duration {
	var longest time.Duration
	for _, o := range m.present() {
		longest = max(longest, now.Sub(o.begun))
	}
	return longest
}

// isOverdue reports whether an order has taken longer than it may.
func (m *member) isOverdue(now time.Time) bool {
	for _, o := range m.present() {
		if !o.due.IsZero() && now.After(o.due) {
			return true
		}
	}
	return false
}

// dropUnheard takes back orders of which nothing was heard for so long.
func (m *member) dropUnheard(now time.Time, patience time.Duration) {
	for _, o := range m.present() {
		if o.silence(now) >= patience {
			m.peer.head.rare.Warn("a peer reports nothing of an order; taking it back", "peer", m.peer.id,
				"chunk", o.id, "futures", o.named(nil))
			m.peer.fault(o.open())
			o.fail(errUnheard)
			m.remove(o)
		}
	}
}
