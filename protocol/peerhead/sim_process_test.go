package peerhead

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/futura-run/futura/batch/futurestore"
	"github.com/futura-run/futura/batch/head"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/seam"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerworker"
)

// simStore is a process's way to a store, until it dies.
type simStore struct {
	kv.Database
	dead atomic.Bool
	// opening names the process, if it has the store for itself.
	opening string
}

// Begin implements kv.Database.
func (s *simStore) Begin(o kv.Options) kv.Tx { return &simTx{Tx: s.Database.Begin(o), store: s} }

// Close implements kv.Database. The store stays.
func (s *simStore) Close() error {
	s.dead.Store(true)
	return nil
}

// Traits returns those of the store.
func (s *simStore) Traits() kv.Traits {
	traits := kv.TraitsOf(s.Database)
	traits.Exclusive, traits.Opening = s.opening != "", s.opening
	if wait := traits.WaitConflict; wait != nil {
		traits.WaitConflict = func(ctx context.Context, t kv.Tx) error {
			if own, ok := t.(*simTx); ok {
				t = own.Tx
			}
			return wait(ctx, t)
		}
	}
	return traits
}

// simTx is a transaction of a process.
type simTx struct {
	kv.Tx
	store *simStore
}

// Get implements kv.Tx.
func (t *simTx) Get(key []byte) kv.Pending[[]byte] { return simRead(t.store, t.Tx.Get(key)) }

// GetRange implements kv.Tx.
func (t *simTx) GetRange(r kv.Range, o kv.RangeOptions) kv.Pending[kv.Page] {
	return simRead(t.store, t.Tx.GetRange(r, o))
}

func simRead[T any](s *simStore, p kv.Pending[T]) kv.Pending[T] {
	if s.dead.Load() {
		var none T
		return kv.Ready(none, kv.ErrClosed)
	}
	return p
}

// ReadVersion implements kv.Tx.
func (t *simTx) ReadVersion(ctx context.Context) (kv.Version, error) {
	if t.store.dead.Load() {
		return kv.NoVersion, kv.ErrClosed
	}
	return t.Tx.ReadVersion(ctx)
}

// Commit implements kv.Tx.
func (t *simTx) Commit(ctx context.Context) (kv.Committed, error) {
	if t.store.dead.Load() {
		return kv.Committed{Version: kv.NoVersion}, kv.ErrClosed
	}
	return t.Tx.Commit(ctx)
}

// simHead is a head, across its restarts.
type simHead struct {
	w    *simWorld
	id   string
	run  *simHeadRun // nil while it is down
	busy bool        // it starts or ends
}

// simHeadRun is one process of a head.
type simHeadRun struct {
	w       *simWorld
	id      string
	store   *simStore
	cluster *fdbmodel.Cluster
	head    *Head
	batches *head.Head
	ctx     context.Context // ends with the process
	end     context.CancelFunc
	stop    context.CancelFunc // lets it drain
	done    chan error
}

func (h *simHead) start() {
	w := h.w
	r := &simHeadRun{w: w, id: h.id, store: &simStore{Database: w.faults}, done: make(chan error, 2)}
	r.ctx, r.end = context.WithCancel(w.over)
	w.insist(func() (err error) {
		r.cluster, err = fdbmodel.Open(r.ctx, r.store, "peers", fdbmodel.Options{
			Config: simConfig(),
			// What waits between two attempts may hold a lock, which would hold up virtual time.
			Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		})
		return err
	})
	o := w.options
	o.Cluster, o.Network, o.Key, o.Name = r.cluster, simHeadNet{w.net, h.id}, []byte(strings.Repeat("k", 32)), h.id
	var err error
	if r.head, err = New(o); err != nil {
		w.flaw("%v", err)
		return
	}
	r.batches = head.New(head.Options{
		Store: futurestore.New(r.cluster, futurestore.Options{
			Backoff: layout.Backoff{Base: 200 * time.Millisecond, Max: 2 * time.Second},
		}),
		Dispatcher: head.NewCluster(r.cluster), BootDelay: time.Second, RequeueInterval: 10 * time.Second,
		WorkerWait: 5 * time.Second,
	})
	var running context.Context
	running, r.stop = context.WithCancel(r.ctx)
	w.spawn(func() { r.done <- r.head.Run(running) })
	w.spawn(func() { r.done <- r.batches.Run(running) })
	<-r.head.Ready()
	w.net.appear(h.id, r)
	w.set(func() { h.run = r })
}

// crash ends the process without a word. It returns once nothing of it is left.
func (h *simHead) crash() {
	r := h.run
	h.w.set(func() { h.run = nil })
	r.store.dead.Store(true)
	h.w.net.disappear(h.id)
	for _, p := range r.head.all() {
		if m := p.membership(); m != nil {
			m.worker.Abandon()
			m.cancel()
		}
	}
	r.end()
	for range cap(r.done) {
		<-r.done
	}
}

// leave ends the process as it should end.
func (h *simHead) leave() {
	r := h.run
	h.w.set(func() { h.run = nil })
	r.stop()
	late := time.NewTimer(simHeal)
	defer late.Stop()
	for range cap(r.done) {
		select {
		case err := <-r.done:
			if err != nil && !errors.Is(err, context.Canceled) {
				h.w.flaw("head %s ended: %v", h.id, err)
			}
		case <-late.C:
			panic("a head does not end: its goroutines go on for ever")
		}
	}
	h.w.net.disappear(h.id)
	r.end()
}

func (r *simHeadRun) lives() context.Context { return r.ctx }

func (r *simHeadRun) connected(other string, up bool, session uint64) {
	b7s := strings.HasPrefix(other, "N")
	r.head.Observe(p2p.Peer{ID: PeerID(other), Connected: up, Session: session, Futura: !b7s, B7s: true})
}

func (r *simHeadRun) called(ctx context.Context, from string, message []byte) []byte {
	check := r.w.expectAnswer(r, from, message)
	answer := r.head.HandleCall(ctx, PeerID(from), message)
	check(answer)
	return answer
}

func (r *simHeadRun) received(ctx context.Context, from string, message []byte, published bool) {
	r.head.HandleMessage(ctx, PeerID(from), message, published)
}

func (r *simHeadRun) blob(ctx context.Context, from, id string) (io.ReadSeekCloser, int64, error) {
	return r.head.OpenModule(ctx, PeerID(from), id)
}

// simPeer is a peer, across its restarts.
type simPeer struct {
	w     *simWorld
	id    string
	slots int
	liar  bool
	plain bool // it runs no modules
	// stateless peers have nothing after a restart.
	stateless bool
	memory    *embedded.Store
	run       *simPeerRun
	busy      bool
}

// simPeerRun is one process of a peer.
type simPeerRun struct {
	peer    *simPeer
	store   *simStore
	worker  *peerworker.Worker
	handler peerworker.Handler
	ctx     context.Context
	end     context.CancelFunc
	stop    context.CancelFunc
	done    chan error

	mu       sync.Mutex
	closed   bool
	calls    sync.WaitGroup // of the handler
	handling context.Context
	cut      context.CancelFunc // ends handling
}

func (p *simPeer) start() {
	w := p.w
	r := &simPeerRun{peer: p, store: &simStore{Database: p.memory, opening: uuid.NewString()}, done: make(chan error, 1)}
	r.ctx, r.end = context.WithCancel(w.over)
	r.handling, r.cut = context.WithCancel(r.ctx)
	o := peerworker.Options{
		Network: r, Slots: p.slots, CPU: 1 << 20, RAM: 1 << 40, Name: p.id, State: "simulated", DrainTimeout: 3 * time.Second,
		MaxChunk: w.peerChunk, MaxItems: 200, MaxChunks: 20,
		Seam: &seam.PeerWorker{Open: func(context.Context) (kv.Database, error) { return r.store, nil }},
	}
	if p.stateless {
		o.State = ""
	}
	if !p.plain {
		o.Modules = simModules{w}
	}
	for _, h := range w.heads {
		o.Heads = append(o.Heads, "/ip4/127.0.0.1/tcp/1/p2p/"+h.id)
	}
	var err error
	if r.worker, err = peerworker.New(o); err != nil {
		w.flaw("%v", err)
		return
	}
	for name, fn := range w.functions() {
		if err := r.worker.Register(name, fn); err != nil {
			w.flaw("%v", err)
		}
	}
	var running context.Context
	running, r.stop = context.WithCancel(r.ctx)
	w.spawn(func() { r.done <- r.worker.Run(running) })
	select {
	case <-r.worker.Ready():
		w.set(func() { p.run = r })
	case err := <-r.done:
		w.flaw("peer %s does not start: %v", p.id, err)
	}
}

// crash ends the process without a word, and with it all that is not in its store.
func (p *simPeer) crash() {
	r := p.run
	p.w.set(func() { p.run = nil })
	r.store.dead.Store(true)
	p.w.net.disappear(p.id)
	r.end()
	<-r.done
}

// leave ends the process as it should end.
func (p *simPeer) leave() {
	r := p.run
	p.w.set(func() { p.run = nil })
	r.stop()
	if err := <-r.done; err != nil {
		p.w.flaw("peer %s ended: %v", p.id, err)
	}
	r.end()
}

// forget has the peer lose its store.
func (p *simPeer) forget() {
	_ = p.memory.Close()
	p.memory = embedded.OpenMemory(embedded.Options{})
}

func (r *simPeerRun) lives() context.Context { return r.handling }

// handle calls the handler, unless the network is closed.
func (r *simPeerRun) handle(call func()) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	r.calls.Add(1)
	r.mu.Unlock()
	defer r.calls.Done()
	call()
}

func (r *simPeerRun) connected(other string, up bool, session uint64) {
	r.handle(func() {
		r.handler.PeerChanged(peerworker.Peer{ID: other, Connected: up, Session: session, Futura: true})
	})
}

func (r *simPeerRun) called(ctx context.Context, from string, message []byte) (answer []byte) {
	if answer = r.peer.w.misbehave(message); answer != nil {
		return answer
	}
	r.handle(func() { answer = r.handler.Called(ctx, from, message) })
	return answer
}

func (r *simPeerRun) received(ctx context.Context, from string, message []byte, published bool) {
	r.handle(func() {
		if published {
			r.handler.Published(ctx, from, message)
		} else {
			r.handler.Received(ctx, from, message)
		}
	})
}

func (r *simPeerRun) blob(ctx context.Context, from, id string) (c io.ReadSeekCloser, size int64, err error) {
	err = errSimAway
	r.handle(func() { c, size, err = r.handler.Blob(ctx, from, id) })
	return c, size, err
}

// ID implements peerworker.Network.
func (r *simPeerRun) ID() string { return r.peer.id }

// Serve implements peerworker.Network.
func (r *simPeerRun) Serve(h peerworker.Handler) error {
	r.handler = h
	r.peer.w.net.appear(r.peer.id, r)
	return nil
}

// Call implements peerworker.Network.
func (r *simPeerRun) Call(ctx context.Context, to string, message []byte) ([]byte, error) {
	if r.peer.liar {
		message = r.peer.w.lie(message)
	}
	if r.peer.w.chance(0.1) {
		message = r.peer.w.offer(message)
	}
	if r.peer.w.chance(0.1) {
		message = r.peer.w.add(message)
	}
	return r.peer.w.net.call(ctx, r.peer.id, to, message)
}

// Send implements peerworker.Network.
func (r *simPeerRun) Send(ctx context.Context, to string, message []byte) error {
	return r.peer.w.net.send(ctx, r.peer.id, to, message, false)
}

// Fetch implements peerworker.Network.
func (r *simPeerRun) Fetch(ctx context.Context, from, id string, limit int64, have io.Reader, to io.Writer,
	_ func(done, total int64),
) error {
	err := r.peer.w.net.fetch(ctx, r.peer.id, from, id, have, to)
	if err != nil {
		return fmt.Errorf("%w (at most %d bytes)", err, limit)
	}
	return nil
}

// Close implements peerworker.Network.
func (r *simPeerRun) Close() error {
	r.peer.w.net.disappear(r.peer.id)
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cut()
	r.calls.Wait()
	return nil
}
