package peerworker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/ratelog"
	"github.com/futura-run/futura/internal/taskcontext"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// Worker serves heads. Its methods may be called from many goroutines.
type Worker struct {
	options     Options
	heads       []headAddress
	network     Network
	log         *slog.Logger
	rare        *ratelog.Log // of what a head can cause as often as it likes
	incarnation string
	functions   map[string]workers.Function
	node        *node
	runner      *runner
	journal     *journal // nil without Options.State
	modules     *moduleCache
	// functionsOfB7S are those that heads of b7s have installed.
	functionsOfB7S *installedFunctions
	blobs          *blobs
	refusals       chan struct{} // has an element for each that is under way
	counts         counts
	ready          chan struct{}

	began    atomic.Bool
	stopping atomic.Bool
	failed   chan error
	work     sync.WaitGroup
	ctx      context.Context // of everything that Run has started

	mu     sync.Mutex
	links  map[string]*link
	chunks map[chunkName]*chunk
	places map[layout.ID]place
	asked  map[*chunk]wanted // items that their heads want back
	news   chan struct{}
	// away are since when heads are away that the worker does not name; of keepLoop alone.
	away map[string]time.Time
	// numbered is the number of the newest chunk.
	numbered uint64
	has      use             // by all heads
	uses     map[string]*use // by head
	// forgotten counts orders of forgotten heads that had no room.
	forgotten int64
	full      atomic.Bool // items of some head don't begin
}

// place is where an item is.
type place struct {
	chunk *chunk
	index int
}

// New returns a worker, which does nothing before Run. It returns ErrOptions, and
// p2p.ErrKey for a key that can't be used.
func New(o Options) (*Worker, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	heads, err := parseHeads(o.Heads, o.Discover != "")
	if err != nil {
		return nil, err
	}
	if o.Network == nil {
		if o.Network, err = openHost(&o, heads); err != nil {
			return nil, err
		}
	}
	var drawn [8]byte
	_, _ = rand.Read(drawn[:]) // never fails
	w := &Worker{
		options: o, heads: heads, network: o.Network, log: o.Logger, rare: ratelog.New(o.Logger, o.clock),
		incarnation: hex.EncodeToString(drawn[:]),
		functions:   map[string]workers.Function{}, ready: make(chan struct{}), failed: make(chan error, 1),
		news: make(chan struct{}, 1), refusals: make(chan struct{}, maxRefusals),
		links: map[string]*link{}, chunks: map[chunkName]*chunk{}, asked: map[*chunk]wanted{}, places: map[layout.ID]place{},
		uses: map[string]*use{},
	}
	if o.State != "" {
		w.journal = &journal{worker: w}
	}
	w.runner = newRunner(w)
	w.modules, w.blobs, w.functionsOfB7S = newModules(w), newBlobs(w), newInstalled(w)
	return w, nil
}

// Register registers a function as go:NAME. It returns layout.ErrBadName for an
// invalid name, and an error for a registered name, a nil function, or after Run.
func (w *Worker) Register(name string, fn workers.Function) error {
	switch {
	case w.began.Load():
		return errors.New("peerworker: functions are registered before Run")
	case fn == nil:
		return fmt.Errorf("peerworker: the function %q is nil", name)
	case w.functions[name] != nil:
		return fmt.Errorf("peerworker: the function %q is registered already", name)
	}
	if err := layout.CheckFunctionName(goPrefix + name); err != nil {
		return err
	}
	if strings.Contains(name, "..") {
		return fmt.Errorf("%w: function %.80q: a head can't order what has \"..\" in its name", layout.ErrBadName, name)
	}
	w.functions[name] = fn
	return nil
}

// Ready returns a channel that is closed once the worker takes orders.
func (w *Worker) Ready() <-chan struct{} { return w.ready }

// ID returns the worker's id in the network.
func (w *Worker) ID() string { return w.network.ID() }

// Addresses are the multiaddrs where heads reach the worker, each with /p2p/ and its
// id. There are none before Ready, without Options.Listen, and with a Network of the
// program's own.
func (w *Worker) Addresses() []string {
	if h, ok := w.network.(*host); ok {
		return h.addresses()
	}
	return nil
}

// Run serves heads until ctx ends. Then it takes no more orders and gives back what
// it has not begun, lets what runs end for at most DrainTimeout, and delivers results
// for at most 5 s more. It returns nil after that, and the error of the store or of the
// network if the worker can't go on. It may be called once.
func (w *Worker) Run(ctx context.Context) error {
	if w.began.Swap(true) {
		return errors.New("peerworker: Run is called once")
	}
	node, err := openNode(ctx, &w.options)
	if err != nil {
		return errors.Join(err, w.network.Close())
	}
	w.node = node
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.ctx = running
	err = w.start(ctx)
	if err == nil {
		close(w.ready)
		select {
		case <-ctx.Done():
		case <-node.done:
		case err = <-w.failed:
		}
		err = errors.Join(err, w.drain(running))
	}
	w.stopping.Store(true)
	stop()
	err = errors.Join(err, w.network.Close())
	w.work.Wait()
	w.modules.cut.close()
	w.rare.Close()
	if ended := node.drain(); !errors.Is(err, ended) { // else drain has told it
		err = errors.Join(err, ended)
	}
	w.blobs.close()
	w.runner.close()
	return errors.Join(err, node.db.Close())
}

func (w *Worker) start(ctx context.Context) error {
	if err := w.functionsOfB7S.recall(ctx); err != nil {
		return err
	}
	o := workers.Options{
		Name: w.options.Name, Labels: w.options.Labels, Slots: w.options.Slots, CPU: w.options.CPU,
		RAM: w.options.RAM, GPU: w.options.GPU, Modules: w.options.Modules, ModuleTimeout: w.options.ModuleTimeout,
		NoHints: true, Policy: w.options.Policy,
		Middleware:   append([]workers.Middleware{w.observe}, w.options.Middleware...),
		DrainTimeout: w.options.DrainTimeout, Logger: slog.New(headNames{w.log.Handler(), w}),
	}
	o.StreamsOutput, o.Source = len(w.options.Middleware) == 0 || w.options.StreamsOutput, w.runner
	if err := w.node.start(ctx, o, w.functions); err != nil {
		return err
	}
	var err error
	if w.runner.info, err = w.node.info(ctx); err != nil {
		return err
	}
	for _, h := range w.heads {
		w.linkOf(h.peer)
	}
	if w.journal != nil { // before Hello says what is kept
		if err := w.recall(ctx); err != nil {
			return err
		}
	}
	w.spawn(func() { w.keepLoop(w.ctx) })
	return w.network.Serve((*handler)(w))
}

// fail ends Run with an error.
func (w *Worker) fail(err error) {
	select {
	case w.failed <- err:
	default:
	}
}

// spawn runs fn, for which Run waits.
func (w *Worker) spawn(fn func()) { w.work.Go(fn) }

// runChunk sees a chunk to its end.
func (w *Worker) runChunk(c *chunk) {
	c.mu.Lock()
	c.begun = true
	c.mu.Unlock()
	w.spawn(func() { c.deliver(w.ctx) })
}

// observe tells chunks which of their functions are called.
func (w *Worker) observe(next workers.Call) workers.Call {
	return func(ctx context.Context, args []byte) ([]byte, error) {
		info, _ := workers.InfoFrom(ctx)
		w.mu.Lock()
		at, found := w.places[info.ID]
		w.mu.Unlock()
		ctx = context.WithValue(ctx, taskcontext.ClientKey{}, nil) // the store here is nobody's to submit to
		if !found {
			return next(ctx, args)
		}
		if items := at.chunk.items; at.index < len(items) {
			info.ID, info.Attempt, info.Attempts = items[at.index].future, int(items[at.index].attempt), 0
		}
		ctx = workers.WithInfo(ctx, info)
		at.chunk.began(at.index)
		defer at.chunk.hasReturned(at.index)
		return next(ctx, args)
	}
}

// linkOf returns the link with a head, and makes it.
func (w *Worker) linkOf(head string) *link {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.link(head)
}

// linkFor is linkOf for the head of a chunk, and returns nil once that is forgotten: nothing would end a link that is
// made for it later.
func (w *Worker) linkFor(c *chunk) *link {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chunks[c.name] != c {
		return nil
	}
	return w.link(c.name.head)
}

// updateLink takes what the network says of a head.
func (w *Worker) updateLink(p Peer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.link(p.ID).update(p)
}

// link is called under mu.
func (w *Worker) link(head string) *link {
	l := w.links[head]
	if l == nil {
		l = newLink(w, head)
		w.links[head] = l
		ctx, stop := context.WithCancel(w.ctx)
		l.stop = stop
		w.spawn(func() { l.run(ctx) })
	}
	return l
}

// forgetLink ends the link with a peer that has gone, unless it is one of the heads or
// results wait for it: there may be any number of such peers.
func (w *Worker) forgetLink(peer string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.heads {
		if h.peer == peer {
			return
		}
	}
	for name := range w.chunks {
		if name.head == peer {
			return
		}
	}
	if l := w.links[peer]; l != nil && !l.isConnected() { // else it is back
		l.stop()
		delete(w.links, peer)
	}
}

// mayOrder reports whether a peer may give orders.
func (w *Worker) mayOrder(peer string) bool {
	return w.options.AllowAnyHead || slices.ContainsFunc(w.heads, func(h headAddress) bool { return h.peer == peer })
}

func (w *Worker) chunk(name chunkName) *chunk {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chunks[name]
}

func (w *Worker) all() []*chunk {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.chunks))
}

// chunksOf returns the chunks of a head.
func (w *Worker) chunksOf(head string) []*chunk {
	return slices.DeleteFunc(w.all(), func(c *chunk) bool { return c.name.head != head })
}

// hello is what a head is told of the worker.
func (w *Worker) hello(ctx context.Context, head string) (*protocol.Hello, error) {
	info, err := w.node.info(ctx)
	if err != nil {
		return nil, err
	}
	m := &protocol.Hello{
		Version: w.options.Version, Incarnation: w.incarnation, Name: w.options.Name, Labels: w.options.Labels,
		Capacity: protocol.Capacity{
			Slots: int(info.Capacity.Slots), CPUMillis: info.Capacity.CPU, RAMBytes: info.Capacity.RAM,
			GPUMillis: info.Capacity.GPU,
		},
		Functions: info.Functions, MaxChunk: w.options.MaxChunk, Limits: true,
	}
	for _, c := range w.chunksOf(head) {
		c.mu.Lock()
		open, unsent := c.open, c.unsent
		c.mu.Unlock()
		if open > 0 && len(m.Running) < protocol.MaxNames { // heads hear of others by their progress
			m.Running = append(m.Running, c.name.chunk)
		}
		if unsent > open && len(m.Kept) < protocol.MaxNames {
			m.Kept = append(m.Kept, protocol.Kept{ChunkID: c.name.chunk, OrderMAC: c.mac})
		}
	}
	return m, nil
}

// greeted says that a head has taken the worker.
func (w *Worker) greeted(head string) {
	w.counts.greeted.Add(1)
	w.log.Info("a head has taken this worker", "head", head)
}

// call sends a message in Futura's own protocol and returns the answer.
func (w *Worker) call(ctx context.Context, head string, m protocol.Message) (protocol.Message, error) {
	data, err := protocol.Encode(m, protocol.DialectFutura)
	if err != nil {
		return nil, err
	}
	return w.ask(ctx, head, data)
}

// ask is call of an encoded message.
func (w *Worker) ask(ctx context.Context, head string, data []byte) (protocol.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	answer, err := w.network.Call(ctx, head, data)
	if err != nil {
		return nil, err
	}
	return protocol.Decode(answer)
}
