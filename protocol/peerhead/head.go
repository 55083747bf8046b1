package peerhead

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/futura-run/futura/internal/budget"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/ratelog"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/workers"
)

// ErrClosed is returned by a head that has ended.
var ErrClosed = errors.New("peerhead: the head has ended")

// Head is a head's side of peers. Its methods may be called from many goroutines, those
// that take messages by the network.
type Head struct {
	options Options
	clock   clock.Clock
	rare    *ratelog.Log   // of what peers and their clients can cause as often as they like
	fleet   *workers.Fleet // of the workers that stand for peers
	cache   *resultCache
	rolls   rollCalls
	parts   parts  // of large values
	pieces  pieces // of modules

	mu        sync.Mutex
	ctx       context.Context // of Run; nil before
	ended     bool
	peers     map[PeerID]*peer
	gone      counts            // of peers that were forgotten
	absent    map[PeerID]*score // of those that were
	lost      map[PeerID]*lostPeer
	promises  promises
	standings standings
	wanted    wanted
	lives     sync.WaitGroup // memberships
	recruits  sync.WaitGroup // of nodes, and looks for workers
	undecided undecided
	nodes     chan struct{} // has room for one signal: look for nodes to recruit
	ready     chan struct{} // closed once it takes peers
}

// New returns a head's side of peers, which takes peers while it runs. It returns an error
// for options that are missing, or out of their range.
func New(o Options) (*Head, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	h := &Head{options: o, clock: o.Cluster.Clock(), peers: map[PeerID]*peer{},
		absent: map[PeerID]*score{}, lost: map[PeerID]*lostPeer{}, ready: make(chan struct{}), nodes: make(chan struct{}, 1),
		fleet: workers.NewFleet(o.Cluster)}
	h.rare = ratelog.New(o.Logger, h.clock)
	h.cache = newResultCache(o.MaxCached, h.clock)
	h.parts.by, h.parts.clock = map[partName]part{}, h.clock
	h.rolls.open, h.wanted.at = map[string]*rollCall{}, map[string]time.Time{}
	return h, nil
}

// Run takes peers until ctx ends, and does a janitor's duties, so that a cluster of peers
// alone has one. When ctx ends, what peers run may end for as long as a worker's
// functions may, and the rest is given back. It returns the store's error if that will not
// come back within this process. It may be called once.
func (h *Head) Run(ctx context.Context) error {
	h.mu.Lock()
	h.ctx = ctx
	h.mu.Unlock()
	close(h.ready)
	ctx, end := context.WithCancel(ctx)
	defer end()
	cleaned := make(chan error, 1)
	go func() {
		defer end()
		cleaned <- workers.RunJanitor(ctx, h.options.Cluster, workers.JanitorOptions{Logger: h.options.Logger})
	}()
	if h.options.Manifest != nil {
		h.recruits.Go(func() { h.recruit(ctx) })
	}
	h.watch(ctx)
	h.mu.Lock()
	h.ended = true
	for _, p := range h.peers {
		p.leave()
	}
	h.mu.Unlock()
	h.lives.Wait()
	h.recruits.Wait()
	h.rare.Close()
	return <-cleaned
}

// Ready returns a channel that is closed once the head takes peers. Earlier hellos are
// refused, and peers say them again.
func (h *Head) Ready() <-chan struct{} { return h.ready }

// watch buries peers that are away or silent for too long, until ctx ends.
func (h *Head) watch(ctx context.Context) {
	every := max(h.options.Grace/4, time.Millisecond)
	for {
		next := h.clock.Now().Add(every)
		if clock.Wait(ctx, h.clock, next) != nil {
			return
		}
		now := h.clock.Now()
		h.cache.sweep(now)
		h.parts.sweep(now)
		late := now.Sub(next)
		for _, p := range h.all() {
			if late >= every {
				p.excuse(now, late)
			}
			p.meet(h.options.Network.Connected(p.id))
			p.look(now)
			p.settleLimit()
		}
	}
}

func (h *Head) all() []*peer {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := make([]*peer, 0, len(h.peers))
	for _, p := range h.peers {
		all = append(all, p)
	}
	return all
}

func (h *Head) hasEnded() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// peer returns a peer, nil for an unknown one.
func (h *Head) peer(id PeerID) *peer {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.peers[id]
}

// admit returns a peer, which it makes if there is room for one more.
func (h *Head) admit(id PeerID) *peer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.peers[id]; p != nil || h.ctx == nil || h.ended || len(h.peers) >= h.options.MaxPeers {
		return p
	}
	p := &peer{head: h, id: id, score: h.recall(id), connected: true, heard: h.clock.Now(),
		greeting: make(chan struct{}, 1), memberships: rate.NewLimiter(membershipRate, membershipBurst),
		fetches: budget.New(peerFetches)}
	h.resume(p)
	h.peers[id] = p
	return p
}

// forget removes a peer that has no membership, and gets none, and is away.
func (h *Head) forget(p *peer) {
	trusted := h.options.Trusted(p.id)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.peers[p.id] == p && len(p.greeting) == 0 && p.membership() == nil { // in the order of greet
		h.gone.add(p)
		h.keepLost(p, trusted)
		h.remember(p)
		delete(h.peers, p.id)
	}
}

// Serve has a host pass on what its peers send, and give them modules. The host is the one
// of Options.Network.
func (h *Head) Serve(host *p2p.Host) {
	host.OnCall(h.HandleCall)
	host.OnMessage(h.HandleMessage)
	host.ServeBlobs(h.OpenModule)
	host.OnPeer(h.Observe)
}

// Observe takes how a peer is connected, whenever that changes.
func (h *Head) Observe(l p2p.Peer) {
	p := h.peer(l.ID)
	if p == nil && l.Connected && l.B7s && !l.Futura && h.options.Manifest != nil {
		p = h.admit(l.ID)
	}
	if p != nil {
		p.observe(l)
	}
}

// Peer is what a head knows of a peer.
type Peer struct {
	ID PeerID `json:"id"`
	// Worker is the id of the peer's membership, empty without one.
	Worker string `json:"worker,omitempty"`
	Name   string `json:"name,omitempty"`
	// Dialect is what it speaks: futura, chunk or strand.
	Dialect   string `json:"dialect"`
	Connected bool   `json:"connected"`
	Slots     int    `json:"slots"`
	// Orders are chunks that it has, with Items that have not ended.
	Orders int `json:"orders"`
	Items  int `json:"items"`
	// Done, Failed and Refused count items since the head met the peer, or forgot that it had
	// been Lost: with a result, that failed, and answers that changed nothing.
	Done    int64 `json:"done"`
	Failed  int64 `json:"failed"`
	Refused int64 `json:"refused"`
	// Disagreed counts items about which the peer said something else than others.
	Disagreed int64 `json:"disagreed"`
	// TakenBack counts items that it had not begun while others were idle, which got them.
	TakenBack int64 `json:"taken_back"`
	// Score says how much of what it was asked the peer has answered of late, from 0 to 1, and
	// Limit how many of its Slots it is given therefore; see the package comment. Latency is
	// how long its answers take beside the runs, on average.
	Score   float64       `json:"score"`
	Limit   int           `json:"limit"`
	Latency time.Duration `json:"latency_ns"`
	// Transfers are the large values that are on their way to the peer, or from it.
	Transfers []Transfer `json:"transfers,omitempty"`
	// Heard is when it last sent something.
	Heard time.Time `json:"heard_at"`
	// LostAt is since when a peer of Lost is away, and zero for one of Peers. Reason says why
	// the head took its work from it, until it is a worker again, and Left is set for one of
	// Lost that said that it goes.
	LostAt time.Time `json:"lost_at,omitzero"`
	Reason string    `json:"reason,omitempty"`
	Left   bool      `json:"left,omitempty"`
}

// Peers are the present peers, by their ids.
func (h *Head) Peers() []Peer {
	var list []Peer
	for _, p := range h.all() {
		list = append(list, p.describe())
	}
	slices.SortFunc(list, func(a, b Peer) int { return cmp.Compare(a.ID, b.ID) })
	return list
}
