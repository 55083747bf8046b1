package peerhead_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerhead"
)

var errAway = errors.New("the peer can't be reached")

// world is a cluster with a head and peers that are functions of the test.
type world struct {
	*testing.T
	store   *faultkv.Database
	cluster *fdbmodel.Cluster
	head    *peerhead.Head
	stop    func()
	over    context.Context  // ends what peers run
	network peerhead.Network // the world itself if it is nil

	mu    sync.Mutex
	peers map[peerhead.PeerID]*fakePeer
	blobs map[string][]byte
	// fetches, if it is not nil, fetches a blob instead of the world.
	fetches func(ctx context.Context, blob []byte, to io.Writer, o p2p.FetchOptions) error
	ran     map[string]int // by the item's arguments
	// published are the messages that the head published.
	published []string
}

// inWorld runs a test in virtual time.
func inWorld(t *testing.T, o peerhead.Options, test func(w *world)) {
	t.Helper()
	inWorldBy(t, nil, o, test)
}

// inWorldBy does so by a clock of the test's own.
func inWorldBy(t *testing.T, c clock.Clock, o peerhead.Options, test func(w *world)) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		w := &world{T: t, peers: map[peerhead.PeerID]*fakePeer{}, blobs: map[string][]byte{}, ran: map[string]int{}}
		var end context.CancelFunc
		w.over, end = context.WithCancel(context.Background())
		w.store = faultkv.Wrap(modeltest.OpenMemory(t), faultkv.Options{})
		var err error
		w.cluster, err = fdbmodel.Open(context.Background(), w.store, "peers", fdbmodel.Options{
			Config: layout.Config{Heartbeat: time.Second, DeadAfter: 5 * time.Second}, Clock: c,
		})
		require.NoError(t, err)
		w.start(o)
		test(w)
		w.stop()
		end()
		synctest.Wait()
		modeltest.RequireSound(t, w.cluster)
	})
}

// start runs a head until stop.
func (w *world) start(o peerhead.Options) {
	o.Cluster, o.Network, o.Key = w.cluster, w, []byte(strings.Repeat("k", 32))
	if w.network != nil {
		o.Network = w.network
	}
	head, err := peerhead.New(o)
	require.NoError(w, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- head.Run(ctx) }()
	synctest.Wait()
	w.head = head
	w.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(w, <-ended)
	})
	w.Cleanup(w.stop)
}

func (w *world) peer(id peerhead.PeerID) *fakePeer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.peers[id]
}

// Call implements peerhead.Network.
func (w *world) Call(ctx context.Context, to peerhead.PeerID, message []byte) ([]byte, error) {
	p := w.peer(to)
	if p == nil || p.isAway() {
		return nil, errAway
	}
	m, err := protocol.Decode(message)
	if err != nil {
		return nil, err
	}
	answer := p.take(m)
	if p.isAway() {
		return nil, errAway // the answer is lost
	}
	return protocol.Encode(answer, protocol.DialectFutura)
}

// Send implements peerhead.Network.
func (w *world) Send(_ context.Context, to peerhead.PeerID, message []byte) error {
	p := w.peer(to)
	if p == nil || p.isAway() {
		return errAway
	}
	m, err := protocol.Decode(message)
	if err != nil {
		return err
	}
	go p.takeB7S(m)
	return nil
}

// Publish implements peerhead.Network.
func (w *world) Publish(_ context.Context, _ string, message []byte) error {
	m, err := protocol.Decode(message)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.published = append(w.published, string(message))
	for _, p := range w.peers {
		go p.takeB7S(m)
	}
	return nil
}

// Connected implements peerhead.Network.
func (w *world) Connected(id peerhead.PeerID) bool {
	p := w.peer(id)
	return p != nil && !p.isAway()
}

// endlessBlob is the id of one of which no byte comes.
const endlessBlob = "endless"

// FetchBlob implements peerhead.Network.
func (w *world) FetchBlob(ctx context.Context, from peerhead.PeerID, id string, to io.Writer, o p2p.FetchOptions,
) error {
	if p := w.peer(from); p == nil || p.isAway() {
		return errAway
	}
	if id == endlessBlob {
		<-ctx.Done()
		return ctx.Err()
	}
	w.mu.Lock()
	blob, found := w.blobs[id]
	w.mu.Unlock()
	if !found {
		return errors.New("no such blob")
	}
	if w.fetches != nil {
		return w.fetches(ctx, blob, to, o)
	}
	_, err := to.Write(blob)
	return err
}

// fakePeer takes orders, and does with them what its fields say.
type fakePeer struct {
	world *world
	id    peerhead.PeerID
	hello protocol.Hello
	// run makes the outcome of an item; it echoes by default.
	run func(order *protocol.WorkOrderBatch, index int) protocol.Outcome
	// takes each item so long.
	takes time.Duration
	// works does the work of an order instead, and gives is told of items that the head wants
	// back, if they are not nil.
	works func(*protocol.WorkOrderBatch)
	gives func(*protocol.TakeBack)
	// b7s takes what comes as to a node of b7s, if it is not nil.
	b7s func(m protocol.Message)
	// acks, if it is set, is what it answers to orders, and late after how long.
	acks protocol.Code
	late time.Duration
	// silent peers run, but neither report nor answer.
	silent bool

	mu      sync.Mutex
	away    bool
	orders  []*protocol.WorkOrderBatch
	kept    map[string]*protocol.WorkOrderBatchResponse // unacknowledged, by chunk
	stopped map[string][]int
}

// manner is how the peer runs items, and how long that takes.
func (p *fakePeer) manner() (run func(*protocol.WorkOrderBatch, int) protocol.Outcome, takes time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run, p.takes
}

// reform has a peer that runs items do well from now on, without taking time.
func (p *fakePeer) reform() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run, p.takes = echo, 0
}

// meet makes a peer, which says hello.
func (w *world) meet(name string, slots int, change ...func(*fakePeer)) *fakePeer {
	p := &fakePeer{
		world: w, id: peerhead.PeerID(name), kept: map[string]*protocol.WorkOrderBatchResponse{},
		stopped: map[string][]int{},
		hello: protocol.Hello{Incarnation: "0123456789abcdef", Capacity: protocol.Capacity{Slots: slots, CPUMillis: 1 << 20,
			RAMBytes: 1 << 40}, Functions: []string{"go:f", layout.AnyModule}},
	}
	p.run = echo
	for _, c := range change {
		c(p)
	}
	w.mu.Lock()
	w.peers[p.id] = p
	w.mu.Unlock()
	answer := p.sayHello()
	require.Equal(w, protocol.CodeOK, answer.Code, answer.Message)
	return p
}

func echo(order *protocol.WorkOrderBatch, index int) protocol.Outcome {
	return protocol.Outcome{Index: index, Code: protocol.CodeOK, Value: order.Items[index].Args,
		Codec: order.Items[index].Codec}
}

func (p *fakePeer) sayHello() *protocol.HelloResponse {
	p.world.Helper()
	p.world.head.Observe(p2p.Peer{ID: p.id, Connected: true, Session: 1, Futura: true})
	hello := p.hello
	p.mu.Lock()
	for id, r := range p.kept {
		hello.Kept = append(hello.Kept, protocol.Kept{ChunkID: id, OrderMAC: r.OrderMAC})
	}
	p.mu.Unlock()
	answer, ok := p.tell(&hello).(*protocol.HelloResponse)
	require.True(p.world, ok)
	return answer
}

// tell sends the head a message and returns the answer.
func (p *fakePeer) tell(m protocol.Message) protocol.Message {
	data, err := protocol.Encode(m, protocol.DialectFutura)
	require.NoError(p.world, err)
	answer, err := protocol.Decode(p.world.head.HandleCall(context.Background(), p.id, data))
	require.NoError(p.world, err)
	return answer
}

func (p *fakePeer) isAway() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.away
}

// setAway cuts the peer off, or brings it back.
func (p *fakePeer) setAway(away bool) {
	p.mu.Lock()
	p.away = away
	p.mu.Unlock()
	p.world.head.Observe(p2p.Peer{ID: p.id, Connected: !away, Session: 1, Futura: true})
}

func (p *fakePeer) take(m protocol.Message) protocol.Message {
	switch m := m.(type) {
	case *protocol.WorkOrderBatch:
		if clock.Sleep(p.world.over, clock.Real{}, p.late) != nil || p.acks != "" {
			return &protocol.Ack{Code: p.acks}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, o := range p.orders {
			if o.ChunkID == m.ChunkID {
				return &protocol.Ack{Code: protocol.CodeConflict}
			}
		}
		p.orders = append(p.orders, m)
		if p.works != nil {
			go p.works(m)
		} else {
			go p.work(m)
		}
		return &protocol.Ack{Code: protocol.CodeAccepted}
	case *protocol.TakeBack:
		if p.gives != nil {
			go p.gives(m)
		}
	case *protocol.CancelOrder:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stopped[m.ChunkID] = append(p.stopped[m.ChunkID], m.Indexes...)
	}
	return &protocol.Ack{Code: protocol.CodeOK}
}

// work runs an order and sends its results, which it keeps until they are acknowledged.
func (p *fakePeer) work(o *protocol.WorkOrderBatch) {
	r := &protocol.WorkOrderBatchResponse{RequestID: o.RequestID, ChunkID: o.ChunkID, OrderMAC: o.OrderMAC}
	for i := range o.Arguments {
		if !p.spend(o) {
			return
		}
		p.world.mu.Lock()
		p.world.ran[string(o.Items[i].Args)]++
		p.world.mu.Unlock()
		run, _ := p.manner()
		r.Outcomes = append(r.Outcomes, run(o, i))
	}
	p.mu.Lock()
	p.kept[o.ChunkID] = r
	p.mu.Unlock()
	if !p.silent {
		p.deliver(o.ChunkID)
	}
}

// spend takes the time of one item, and reports meanwhile. It reports whether the world
// goes on.
func (p *fakePeer) spend(o *protocol.WorkOrderBatch) bool {
	_, takes := p.manner()
	wait := 100 * time.Millisecond
	for end := time.Now().Add(takes); time.Now().Before(end); wait = time.Second {
		next := time.Now().Add(wait)
		if next.After(end) {
			next = end
		}
		if clock.Wait(p.world.over, clock.Real{}, next) != nil {
			return false
		}
		if !p.silent && !p.isAway() {
			p.tell(&protocol.WorkOrderProgress{ChunkID: o.ChunkID, OrderMAC: o.OrderMAC, Running: 1})
		}
	}
	return true
}

// deliver sends the results of a chunk, unless the peer is away.
func (p *fakePeer) deliver(chunk string) protocol.Code {
	p.mu.Lock()
	r, away := p.kept[chunk], p.away
	var items []protocol.OrderItem
	for _, o := range p.orders {
		if o.ChunkID == chunk {
			items = o.Items
		}
	}
	p.mu.Unlock()
	if away || r == nil {
		return ""
	}
	ack, ok := p.tell(r).(*protocol.Ack)
	require.True(p.world, ok)
	if ack.Code == protocol.CodeConflict {
		again := *r
		for _, item := range items {
			again.Items = append(again.Items, protocol.OrderItem{ID: item.ID, Attempt: item.Attempt})
		}
		ack, _ = p.tell(&again).(*protocol.Ack)
	}
	if ack.Code == protocol.CodeOK || ack.Code == protocol.CodeGone {
		p.mu.Lock()
		delete(p.kept, chunk)
		p.mu.Unlock()
	}
	return ack.Code
}

// unacknowledged are the chunks whose results it has.
func (p *fakePeer) unacknowledged() (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.kept {
		ids = append(ids, id)
	}
	return ids
}

// takeB7S takes what comes as to a node of b7s: it answers roll calls.
func (p *fakePeer) takeB7S(m protocol.Message) {
	if p.b7s != nil {
		p.b7s(m)
		return
	}
	call, ok := m.(*protocol.RollCall)
	if !ok {
		return
	}
	data, err := protocol.Encode(&protocol.RollCallResponse{Code: protocol.CodeAccepted, FunctionID: call.FunctionID,
		RequestID: call.RequestID, BatchSupport: call.Batch}, protocol.DialectChunk)
	require.NoError(p.world, err)
	p.world.head.HandleMessage(context.Background(), p.id, data, false)
}

// stall has the store answer nothing until its result is called.
func (w *world) stall() (end func()) {
	gate := make(chan struct{})
	w.store.SetOptions(faultkv.Options{Latency: time.Hour, Sleep: func(ctx context.Context, _ time.Duration) error {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return ctx.Err()
	}})
	return func() {
		w.store.SetOptions(faultkv.Options{})
		close(gate)
	}
}

func elapse(d time.Duration) {
	if d > 0 {
		_ = clock.Wait(context.Background(), clock.Real{}, time.Now().Add(d))
	}
}

// submit submits futures of go:f with the numbers from 0 as arguments.
func (w *world) submit(n int, change ...func(*layout.Spec)) []layout.ID {
	w.Helper()
	subs := make([]fdbmodel.Submission, n)
	for i := range subs {
		subs[i] = fdbmodel.Submission{Spec: layout.Spec{Function: "go:f", Codec: layout.CodecRaw}, Args: fmt.Append(nil, i)}
		for _, c := range change {
			c(&subs[i].Spec)
		}
	}
	made, err := w.cluster.Submit(context.Background(), subs)
	require.NoError(w, err)
	ids := make([]layout.ID, n)
	for i := range made {
		ids[i] = made[i].ID
	}
	return ids
}

func (w *world) rows(ids []layout.ID) []layout.Row {
	w.Helper()
	rows, err := w.cluster.GetMany(context.Background(), ids)
	require.NoError(w, err)
	return rows
}

// settle lets virtual time pass.
func (w *world) settle(d time.Duration) {
	elapse(d)
	synctest.Wait()
}

// requireEchoes has all futures realized with their arguments.
func (w *world) requireEchoes(ids []layout.ID) {
	w.Helper()
	for i, row := range w.rows(ids) {
		require.Equal(w, layout.Realized, row.State(), "future %d: %+v", i, row.Exception)
		require.Equal(w, fmt.Sprint(i), string(row.Result.Value))
	}
}

func (w *world) runs() (most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.ran {
		most = max(most, n)
	}
	return most
}

// inBadOptions has New refuse options.
func inBadOptions(t *testing.T, o peerhead.Options) {
	t.Helper()
	cluster, err := fdbmodel.Open(context.Background(), modeltest.OpenMemory(t), "peers", fdbmodel.Options{})
	require.NoError(t, err)
	o.Cluster, o.Network, o.Key = cluster, &world{}, []byte(strings.Repeat("k", 32))
	_, err = peerhead.New(o)
	require.Error(t, err)
}
