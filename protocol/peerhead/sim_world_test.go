package peerhead

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/protocol"
)

// simReport is what a run was like.
type simReport struct {
	Futures, Items, Runs, Large                        int
	Lost, Repeated, Unanswered, Broken, Forged, Lies   int
	HeadCrashes, HeadStops, PeerCrashes, PeerForgets   int
	PeerStops, NodeCrashes, Cuts, Recoveries, Cancels  int
	Retries, Discards, Offers, Realized, Failed, Nodes int
	NodeOrders, Surplus, Refused, Silent               int
	// Acknowledged are answers to results that were compared with the store, and Late
	// results of earlier memberships that heads have cached.
	Acknowledged, Late int
	Healed, Virtual    time.Duration
}

// simWorld is one run: a cluster, heads, peers and nodes of b7s on one network, in virtual
// time.
type simWorld struct {
	t       *testing.T
	options Options // of heads
	faults  *faultkv.Database
	client  *fdbmodel.Cluster // meets no faults
	net     *simNet
	module  string
	// peerChunk is how many items peers take in an order.
	peerChunk int

	over    context.Context // ends the world
	healing atomic.Bool
	tasks   sync.WaitGroup

	processes sync.Mutex // what is up, and what is busy
	heads     []*simHead
	peers     []*simPeer
	nodes     []*simNode

	mu      sync.Mutex
	random  *rand.Rand
	report  simReport
	runs    map[string]int // of functions, by the number of the item
	futures []*simFuture
	byID    map[layout.ID]*simFuture
	batches []*simBatch
	items   map[layout.ID]string // how items of batches ended
	broken  []string
	log     []string
	began   time.Time
}

// Bounds of a run.
const (
	simChaos   = 60 * time.Second
	simHeal    = 30 * time.Minute
	simFutures = 60
	simLog     = 400
)

func simConfig() layout.Config {
	return layout.Config{Shards: 4, Heartbeat: time.Second, DeadAfter: 5 * time.Second, InfeasibleAfter: time.Hour}
}

// simulate runs a seed and returns what does not hold.
func simulate(t *testing.T, seed uint64) (report simReport, err error) {
	bubble.Test(t, func(t *testing.T) {
		w := &simWorld{
			t: t, random: rand.New(rand.NewPCG(seed, 0x9ee5)), runs: map[string]int{}, byID: map[layout.ID]*simFuture{},
			items: map[layout.ID]string{}, began: time.Now(),
		}
		over, end := context.WithCancel(context.Background())
		w.over, w.net = over, newSimNet(w)
		store := embedded.OpenMemory(embedded.Options{})
		w.begin(store)
		w.chaos()
		w.heal()
		w.finish()
		end()
		w.tasks.Wait()
		w.report.Virtual = time.Since(w.began)
		for _, p := range w.peers {
			_ = p.memory.Close()
		}
		if failed := store.Close(); failed != nil {
			w.flaw("%v", failed)
		}
		report = w.report
		if len(w.broken) > 0 {
			err = fmt.Errorf("seed %d:\n%s\n%s", seed, strings.Join(w.broken, "\n"), strings.Join(w.log, "\n"))
		}
	})
	return report, err
}

// begin opens the cluster and starts everybody.
func (w *simWorld) begin(store *embedded.Store) {
	w.faults = faultkv.Wrap(store, faultkv.Everywhere(w.random.Uint64(), 0.01))
	var err error
	w.client, err = fdbmodel.Open(w.over, store, "peers", fdbmodel.Options{Config: simConfig()})
	if err != nil {
		w.t.Fatal(err)
	}
	module, err := modules.Of(w.client).Put(w.over, []byte(simCode), "")
	if err != nil {
		w.t.Fatal(err)
	}
	w.module = module.CID
	for name, kind := range map[string]layout.LaneKind{"pair": {Width: 2}, "rated": {Width: 50, Rate: 2,
		Every: 2 * time.Second}} {
		if err := lanes.Of(w.client).SetKind(w.over, name, kind); err != nil {
			w.t.Fatal(err)
		}
	}
	w.drawOptions()
	for n := range 1 + w.draw(2) {
		w.heads = append(w.heads, &simHead{w: w, id: fmt.Sprintf("H%d", n)})
	}
	for n := range 3 {
		w.peers = append(w.peers, &simPeer{w: w, id: fmt.Sprintf("P%d", n), slots: 1 + w.draw(6),
			stateless: w.draw(2) == 0, plain: n == 1 && !w.options.Verify.on(), // a liar and another one can't decide
			liar: n == 2 && w.options.Verify.on(), memory: embedded.OpenMemory(embedded.Options{})})
	}
	for n := range w.draw(4) {
		w.nodes = append(w.nodes, &simNode{w: w, id: fmt.Sprintf("N%d", n),
			dialect: []protocol.Dialect{protocol.DialectChunk, protocol.DialectStrand}[w.draw(2)]})
	}
	w.report.Nodes = len(w.nodes)
	w.startAll()
}

// drawOptions draws those of heads.
func (w *simWorld) drawOptions() {
	w.options = Options{
		Manifest: func(cid string) string { return "http://head/" + cid }, AdmitStrand: true, OrderTime: 20 * time.Second,
		B7SSlots: 1 + w.draw(8), Grace: []time.Duration{0, 8 * time.Second}[w.draw(2)],
		MaxChunk: []int{1, 3, 256}[w.draw(3)], MaxCached: []int64{0, 1500}[w.draw(2)],
		MaxOrder: []int{0, 500}[w.draw(2)],
	}
	w.peerChunk = []int{2, 1000}[w.draw(2)]
	if w.draw(4) == 0 {
		w.options.Verify = Verify{Peers: 3, Agree: 2}
	}
}

func (w *simWorld) startAll() {
	for _, h := range w.heads {
		if h.run == nil {
			h.start()
		}
	}
	for _, p := range w.peers {
		if p.run == nil {
			p.start()
		}
	}
	for _, n := range w.nodes {
		if n.run == nil {
			n.start()
		}
	}
}

// chaos asks for work while faults happen.
func (w *simWorld) chaos() {
	w.logf("%d heads, %d nodes, %+v", len(w.heads), len(w.nodes), w.options)
	batches := w.draw(3)
	look := time.Now()
	for time.Since(w.began) < simChaos && len(w.flaws()) == 0 {
		w.pass(w.over, time.Duration(w.draw(600))*time.Millisecond)
		if len(w.futures) < simFutures && w.draw(4) == 0 {
			w.submit(1 + w.draw(6))
		}
		if len(w.batches) < batches && w.draw(30) == 0 {
			b := w.drawBatch()
			w.spawn(func() { w.submitBatch(b) })
		}
		w.misfortune()
		if time.Since(look) > 3*time.Second {
			w.check()
			look = time.Now()
		}
	}
}

// misfortune lets something go wrong now and then.
func (w *simWorld) misfortune() {
	switch w.draw(40) {
	case 0:
		w.restartHead(true)
	case 1:
		w.restartHead(false)
	case 2, 3:
		w.restartPeer(true, false)
	case 4:
		w.restartPeer(true, true)
	case 5:
		w.restartPeer(false, false)
	case 6, 7:
		w.net.disturb()
		w.report.Cuts++
	case 8, 9, 10:
		w.net.forge()
	case 11, 12:
		if len(w.futures) > 0 {
			w.cancel()
			w.report.Cancels++
		}
	case 13:
		w.faults.Recover()
		w.report.Recoveries++
	case 14:
		w.restartNode()
	case 15:
		w.retry()
	case 16:
		w.discard()
	}
}

func (w *simWorld) restartHead(crash bool) {
	h := w.heads[w.draw(len(w.heads))]
	if !w.occupy(&h.busy, func() bool { return h.run != nil }) {
		return
	}
	w.logf("head %s ends (crash %t)", h.id, crash)
	w.spawn(func() {
		defer w.set(func() { h.busy = false })
		if crash {
			w.count(&w.report.HeadCrashes)
			h.crash()
		} else {
			w.count(&w.report.HeadStops)
			h.leave()
		}
		w.pass(w.over, w.delay(10*time.Second))
		h.start()
		w.logf("head %s is back", h.id)
	})
}

func (w *simWorld) restartPeer(crash, forget bool) {
	p := w.peers[w.draw(len(w.peers))]
	if !w.occupy(&p.busy, func() bool { return p.run != nil }) {
		return
	}
	w.logf("peer %s ends (crash %t, forgets %t)", p.id, crash, forget)
	w.spawn(func() {
		defer w.set(func() { p.busy = false })
		if crash {
			w.count(&w.report.PeerCrashes)
			p.crash()
		} else {
			w.count(&w.report.PeerStops)
			p.leave()
		}
		if forget || p.stateless {
			w.count(&w.report.PeerForgets)
			p.forget()
		}
		w.pass(w.over, w.delay(10*time.Second))
		p.start()
		w.logf("peer %s is back", p.id)
	})
}

func (w *simWorld) restartNode() {
	if len(w.nodes) == 0 {
		return
	}
	n := w.nodes[w.draw(len(w.nodes))]
	if !w.occupy(&n.busy, func() bool { return n.run != nil }) {
		return
	}
	w.logf("node %s ends", n.id)
	w.count(&w.report.NodeCrashes)
	w.spawn(func() {
		defer w.set(func() { n.busy = false })
		n.crash()
		w.pass(w.over, w.delay(10*time.Second))
		n.start()
	})
}

// occupy takes a process that is up, unless it is taken.
func (w *simWorld) occupy(busy *bool, up func() bool) bool {
	w.processes.Lock()
	defer w.processes.Unlock()
	if *busy || !up() {
		return false
	}
	*busy = true
	return true
}

// set changes what is up.
func (w *simWorld) set(change func()) {
	w.processes.Lock()
	defer w.processes.Unlock()
	change()
}

// isBusy reports whether a process starts or ends.
func (w *simWorld) isBusy() (busy bool) {
	w.set(func() {
		for _, h := range w.heads {
			busy = busy || h.busy
		}
		for _, p := range w.peers {
			busy = busy || p.busy
		}
		for _, n := range w.nodes {
			busy = busy || n.busy
		}
	})
	return busy
}

// heal ends the faults and waits for everything to end, and for nothing to be left.
func (w *simWorld) heal() {
	w.logf("healing")
	w.healing.Store(true)
	w.faults.Pause()
	w.faults.Flush()
	w.net.heal()
	began := time.Now()
	for w.isBusy() && time.Since(began) < simHeal {
		w.pass(w.over, time.Second)
	}
	w.startAll()
	for open := w.check(); open > 0 && len(w.flaws()) == 0; open = w.check() {
		if time.Since(began) > simHeal {
			w.flaw("%d have not ended within %v: %s", open, simHeal, w.stuck())
			return
		}
		w.pass(w.over, 5*time.Second)
	}
	w.report.Healed = time.Since(began)
	began = time.Now()
	for left := w.leaks(); len(left) > 0 && len(w.flaws()) == 0; left = w.leaks() {
		if time.Since(began) > cachedFor+5*time.Minute {
			w.flaw("all has ended, and there is left: %s", strings.Join(left, "; "))
			return
		}
		w.pass(w.over, 10*time.Second)
		synctest.Wait()
	}
}

// stuck says what has not ended.
func (w *simWorld) stuck() string {
	text := ""
	for _, f := range w.futures {
		if f.ended == "" {
			row, err := w.client.Get(w.over, f.id)
			text += fmt.Sprintf("\n  %d %s %s: %s %+v %v %+v, in line %t", f.n, f.kind, f.id, row.State(), row.Attempts, err,
				row.Claim, row.InLine())
			text += fmt.Sprintf("\n    %+v", row.Spec)
		}
	}
	for _, h := range w.heads {
		if h.run != nil {
			text += fmt.Sprintf("\n  head %s: %+v", h.id, h.run.head.Peers())
		}
	}
	members, err := w.client.Workers(w.over)
	for i := range members {
		text += fmt.Sprintf("\n  worker %+v", members[i])
	}
	return text + fmt.Sprintf(" %v\n", err) + strings.Join(w.leaks(), "\n")
}

// finish ends all processes as they should end.
func (w *simWorld) finish() {
	for _, p := range w.peers {
		if p.run != nil {
			p.leave()
		}
	}
	for _, n := range w.nodes {
		if n.run != nil {
			n.crash()
		}
	}
	for _, h := range w.heads {
		if h.run != nil {
			h.leave()
		}
	}
	w.check()
	for _, p := range w.peers {
		if len(w.flaws()) == 0 {
			w.checkStore(p)
		}
	}
	for _, f := range w.futures {
		switch {
		case strings.HasPrefix(f.ended, "result"):
			w.report.Realized++
		case f.ended != "":
			w.report.Failed++
		}
	}
	w.report.Futures, w.report.Items = len(w.futures), len(w.items)
}

// spawn runs fn, for which the end of the world waits.
func (w *simWorld) spawn(fn func()) { w.tasks.Go(fn) }

// insist repeats what the store may fail.
func (w *simWorld) insist(fn func() error) {
	for w.over.Err() == nil {
		err := fn()
		if err == nil {
			return
		}
		w.logf("again: %v", err)
		w.pass(w.over, 100*time.Millisecond)
	}
}

func (w *simWorld) count(n *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n++
}

func (w *simWorld) flaw(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.broken) < 20 {
		w.broken = append(w.broken, fmt.Sprintf("after %v: ", time.Since(w.began))+fmt.Sprintf(format, args...))
	}
}

func (w *simWorld) flaws() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken
}

func (w *simWorld) logf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.log) < simLog {
		w.log = append(w.log, fmt.Sprintf("  %v ", time.Since(w.began))+fmt.Sprintf(format, args...))
	}
}
