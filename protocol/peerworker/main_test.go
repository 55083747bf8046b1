package peerworker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testTime = 60 * time.Second
	headID   = "12D3KooWHead"
)

// memory is a network of one worker, and of heads, in memory.
type memory struct {
	mu      sync.Mutex
	handler Handler
	heads   map[string]*fakeHead
	session uint64
	away    map[string]bool
	b7s     bool // the heads don't speak Futura's protocol
	closed  bool
	calls   sync.WaitGroup
}

var errAway = errors.New("the peer is away")

func newMemory() *memory { return &memory{heads: map[string]*fakeHead{}, away: map[string]bool{}} }

func (n *memory) ID() string { return "12D3KooWWorker" }

func (n *memory) Serve(h Handler) error {
	n.mu.Lock()
	n.handler = h
	n.mu.Unlock()
	for id := range n.heads {
		n.connect(id)
	}
	return nil
}

// connect makes a head reachable.
func (n *memory) connect(id string) {
	n.mu.Lock()
	n.session++
	n.away[id] = false
	p, h := Peer{ID: id, Connected: true, Session: n.session, Futura: !n.b7s}, n.handler
	n.mu.Unlock()
	h.PeerChanged(p)
}

// part makes it unreachable.
func (n *memory) part(id string) {
	n.mu.Lock()
	n.away[id] = true
	p, h := Peer{ID: id, Session: n.session}, n.handler
	n.mu.Unlock()
	h.PeerChanged(p)
}

// head returns a head that can be reached.
func (n *memory) head(id string) (*fakeHead, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.heads[id]
	if h == nil || n.away[id] || n.closed {
		return nil, errAway
	}
	return h, nil
}

func (n *memory) Call(ctx context.Context, peer string, message []byte) ([]byte, error) {
	h, err := n.head(peer)
	if err != nil {
		return nil, err
	}
	m, err := protocol.Decode(message)
	require.NoError(h.t, err)
	answer := h.answer(ctx, m)
	if answer == nil {
		return nil, errAway
	}
	if _, err := n.head(peer); err != nil {
		return nil, err
	}
	return protocol.Encode(answer, protocol.DialectFutura)
}

func (n *memory) Send(_ context.Context, peer string, message []byte) error {
	h, err := n.head(peer)
	if err != nil {
		return err
	}
	h.sent <- message
	return nil
}

func (n *memory) Fetch(ctx context.Context, peer, id string, limit int64, have io.Reader, to io.Writer,
	progress func(done, total int64),
) error {
	h, err := n.head(peer)
	if err != nil {
		return err
	}
	h.mu.Lock()
	content, found := h.blobs[id]
	h.fetches++
	stuck := h.stuck
	h.mu.Unlock()
	if stuck {
		<-ctx.Done()
		return ctx.Err()
	}
	switch {
	case !found:
		return ErrNoBlob
	case int64(len(content)) > limit:
		return ErrTooLarge
	}
	begun, err := io.Copy(io.Discard, have)
	if err != nil {
		return err
	}
	for at := int(begun); at < len(content); at += 1000 {
		progress(int64(at), int64(len(content)))
		if _, err := to.Write(content[at:min(at+1000, len(content))]); err != nil {
			return err
		}
	}
	progress(int64(len(content)), int64(len(content)))
	return nil
}

func (n *memory) Close() error {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.calls.Wait()
	return nil
}

// fakeHead is a head as a worker sees it.
type fakeHead struct {
	t    testing.TB
	id   string
	net  *memory
	sent chan []byte // messages of b7s's protocol

	mu       sync.Mutex
	hello    func(*protocol.Hello) *protocol.HelloResponse
	results  func(*protocol.WorkOrderBatchResponse) *protocol.Ack
	told     func(*protocol.WorkOrderProgress) *protocol.Ack
	outcomes map[string]map[int][]protocol.Outcome // by chunk and place
	last     map[string]bool                       // chunks whose last message came
	goodbyes []*protocol.Goodbye
	hellos   []*protocol.Hello
	progress []*protocol.WorkOrderProgress
	blobs    map[string][]byte
	fetches  int
	stuck    bool // nothing comes of its blobs
	changed  chan struct{}
}

func newHead(t testing.TB, n *memory, id string) *fakeHead {
	h := &fakeHead{
		t: t, id: id, net: n, sent: make(chan []byte, 100), outcomes: map[string]map[int][]protocol.Outcome{},
		last: map[string]bool{}, changed: make(chan struct{}),
		blobs: map[string][]byte{},
	}
	h.hello = func(*protocol.Hello) *protocol.HelloResponse {
		return &protocol.HelloResponse{Code: protocol.CodeOK, HeartbeatMS: 50}
	}
	h.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack { return &protocol.Ack{Code: protocol.CodeOK} }
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heads[id] = h
	return h
}

// set changes how the head answers.
func (h *fakeHead) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

func (h *fakeHead) note() {
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *fakeHead) answer(ctx context.Context, m protocol.Message) protocol.Message {
	h.mu.Lock()
	hello, results := h.hello, h.results
	h.mu.Unlock()
	switch m := m.(type) {
	case *protocol.Hello:
		r := hello(m)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.hellos = append(h.hellos, m)
		h.note()
		if r == nil {
			return nil
		}
		return r
	case *protocol.WorkOrderBatchResponse:
		a := results(m)
		if a != nil && a.Code == protocol.CodeOK {
			h.mu.Lock()
			if h.outcomes[m.ChunkID] == nil {
				h.outcomes[m.ChunkID] = map[int][]protocol.Outcome{}
			}
			for _, o := range m.Outcomes {
				h.outcomes[m.ChunkID][o.Index] = append(h.outcomes[m.ChunkID][o.Index], o)
			}
			h.last[m.ChunkID] = h.last[m.ChunkID] || !m.Partial
			h.note()
			h.mu.Unlock()
		}
		if a == nil {
			return nil
		}
		return a
	case *protocol.Goodbye:
		h.mu.Lock()
		defer h.mu.Unlock()
		h.goodbyes = append(h.goodbyes, m)
		h.note()
	case *protocol.WorkOrderProgress:
		h.mu.Lock()
		defer h.mu.Unlock()
		h.progress = append(h.progress, m)
		h.note()
		if h.told != nil {
			return h.told(m)
		}
	default:
		h.t.Errorf("a worker sent %s", m.Type())
	}
	return &protocol.Ack{Code: protocol.CodeOK}
}

// order sends an order and returns the answer.
func (h *fakeHead) order(m protocol.Message) *protocol.Ack {
	h.t.Helper()
	data, err := protocol.Encode(m, protocol.DialectFutura)
	require.NoError(h.t, err)
	return h.raw(data)
}

func (h *fakeHead) raw(data []byte) *protocol.Ack {
	h.t.Helper()
	h.net.mu.Lock()
	handler := h.net.handler
	h.net.calls.Add(1)
	h.net.mu.Unlock()
	defer h.net.calls.Done()
	answer, err := protocol.Decode(handler.Called(h.t.Context(), h.id, data))
	require.NoError(h.t, err)
	return answer.(*protocol.Ack)
}

// await waits until holds returns true, under the head's lock.
func (h *fakeHead) await(what string, holds func() bool) {
	h.t.Helper()
	timer := time.NewTimer(testTime)
	defer timer.Stop()
	for {
		h.mu.Lock()
		ok, changed := holds(), h.changed
		h.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			require.FailNow(h.t, "not in time: "+what)
		}
	}
}

// all waits until the outcomes of all items of a chunk are there, once each.
func (h *fakeHead) all(chunk string, n int) []protocol.Outcome {
	h.t.Helper()
	h.await(fmt.Sprintf("%d outcomes of %s", n, chunk), func() bool {
		return len(h.outcomes[chunk]) == n && h.last[chunk]
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]protocol.Outcome, n)
	for i := range all {
		require.Len(h.t, h.outcomes[chunk][i], 1, "item %d", i)
		all[i] = h.outcomes[chunk][i][0]
	}
	return all
}

// running is a worker that runs.
type running struct {
	*Worker
	t    testing.TB
	net  *memory
	stop context.CancelFunc
	done chan error
}

func options(n *memory) Options {
	return Options{
		Heads: []string{"/ip4/127.0.0.1/tcp/1/p2p/" + headID}, Network: n, Slots: 4, DrainTimeout: 5 * time.Second,
	}
}

// withHead returns a network with a head, and the options of a worker for it.
func withHead(t testing.TB) (*memory, *fakeHead, Options) {
	var o Options
	n, h := newNetwork(t, &o)
	return n, h, options(n)
}

// withState is withHead of a worker that has a directory.
func withState(t testing.TB) (*memory, *fakeHead, Options) {
	n, h, o := withHead(t)
	o.State = t.TempDir()
	return n, h, o
}

// newNetwork gives options another network, with another head.
func newNetwork(t testing.TB, o *Options) (*memory, *fakeHead) {
	n := newMemory()
	o.Network = n
	return n, newHead(t, n, headID)
}

// run runs a worker with some functions until the test ends.
func run(t testing.TB, o Options) *running {
	w, err := New(o)
	require.NoError(t, err)
	for name, fn := range functions {
		require.NoError(t, w.Register(name, fn))
	}
	n, _ := o.Network.(*memory)
	return start(t, w, n)
}

// start runs a worker until the test ends.
func start(t testing.TB, w *Worker, n *memory) *running {
	ctx, stop := context.WithCancel(context.Background())
	r := &running{Worker: w, t: t, net: n, stop: stop, done: make(chan error, 1)}
	go func() { r.done <- w.Run(ctx) }()
	select {
	case <-w.Ready():
	case err := <-r.done:
		require.FailNow(t, "the worker ended", "%v", err)
	}
	t.Cleanup(func() {
		stop()
		if err, open := <-r.done; open {
			require.NoError(t, err)
		}
	})
	return r
}

// end stops the worker and returns what Run did.
func (r *running) end() error {
	r.stop()
	err := <-r.done
	close(r.done)
	return err
}

// awaitHead waits until a head has taken the worker.
func (r *running) awaitHead() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	require.NoError(r.t, r.linkOf(headID).awaitUp(ctx, nil))
}

// awaitEnded waits until no item of a chunk is open.
func (r *running) awaitEnded(m *protocol.WorkOrderBatch) {
	r.t.Helper()
	c := r.chunk(chunkName{headID, m.ChunkID})
	require.Eventually(r.t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.open == 0
	}, testTime, time.Millisecond)
}

// idle waits until the worker has nothing left.
func (r *running) idle() {
	r.t.Helper()
	for _, c := range r.all() {
		select {
		case <-c.gone:
		case <-time.After(testTime):
			require.FailNow(r.t, "a chunk is left", "%+v", r.Stats())
		}
	}
	s := r.Stats()
	require.Zero(r.t, s.Chunks)
	require.Zero(r.t, s.Items)
	require.Zero(r.t, s.Bytes)
	r.runner.mu.Lock()
	defer r.runner.mu.Unlock()
	require.Empty(r.t, r.runner.items)
	require.Empty(r.t, r.runner.spools)
	require.Zero(r.t, r.runner.lines.n)
	require.Zero(r.t, r.has.unsent)
	require.Empty(r.t, r.blobs.known)
	all, foreign, err := (&journal{worker: r.Worker}).read(context.Background())
	require.NoError(r.t, err)
	require.Empty(r.t, all)
	require.Empty(r.t, foreign)
}

// goOrder is an order of a Go function, with an item for each list of arguments.
func goOrder(function string, args ...string) *protocol.WorkOrderBatch {
	m := &protocol.WorkOrderBatch{
		Template:  protocol.Template{FunctionID: "go:" + function},
		RequestID: uuid.NewString(), ChunkID: uuid.NewString(), OrderMAC: "ticket",
	}
	for _, a := range args {
		m.Arguments = append(m.Arguments, []string{})
		m.Items = append(m.Items, protocol.OrderItem{ID: uuid.NewString(), Attempt: 1, Codec: "raw", Args: []byte(a)})
	}
	return m
}

// logTo returns a logger whose warnings about installations go to a channel.
func logTo(to chan<- string) *slog.Logger { return slog.New(warnings{slog.DiscardHandler, to}) }

type warnings struct {
	slog.Handler
	to chan<- string
}

func (warnings) Enabled(_ context.Context, l slog.Level) bool { return l == slog.LevelWarn }

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "a function can't be installed" {
		text := ""
		r.Attrs(func(a slog.Attr) bool {
			text += a.String() + " "
			return true
		})
		w.to <- text
	}
	return nil
}
