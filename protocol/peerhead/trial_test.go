package peerhead_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/peerhead"
	"github.com/futura-run/futura/workers"
)

// bad are ways of a peer that does not do its work.
var bad = map[string]func(*fakePeer){
	"wrong status": func(p *fakePeer) { p.acks = protocol.CodeError },
	"silence":      func(p *fakePeer) { p.works = func(*protocol.WorkOrderBatch) {} },
	"refusals":     func(p *fakePeer) { p.run = givesBack },
	// It has one slot, and says of nothing that it runs.
	"slots": func(p *fakePeer) {
		lane := make(chan struct{}, 1)
		p.works = func(o *protocol.WorkOrderBatch) {
			lane <- struct{}{}
			defer func() { <-lane }()
			_ = clock.Sleep(p.world.over, clock.Real{}, time.Minute)
		}
	},
	// It takes long to say that it has an order.
	"slow": func(p *fakePeer) { p.late = 20 * time.Second },
}

// TestABadPeerKeepsNothingFromAnHonestOne has a bad peer, which says that it has all slots
// there are, beside an honest peer and beside a worker: of 200 futures, and of one alone, each
// begins at the honest one within a second after it could.
func TestABadPeerKeepsNothingFromAnHonestOne(t *testing.T) {
	for name, way := range bad {
		for _, peer := range []bool{true, false} {
			for _, n := range []int{1, 200} {
				t.Run(fmt.Sprintf("%s/%t/%d", name, peer, n), func(t *testing.T) {
					inWorld(t, peerhead.Options{}, func(w *world) {
						w.meet("bad", math.MaxInt32, way)
						if peer {
							w.meet("honest", 8)
						} else {
							w.startWorker(8)
						}
						w.settle(time.Second)
						for range 3 {
							took := w.serve(w.submit(n))
							w.Logf("%d: %v", n, took)
							require.LessOrEqual(w, took, time.Second)
						}
					})
				})
			}
		}
	}
}

// TestABadPeerAloneIsAskedAgain has a bad peer be the only one: it gets what it rejected after
// its backoff, and all of it once it is good.
func TestABadPeerAloneIsAskedAgain(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.meet("p", 4, func(p *fakePeer) { p.run = givesBack })
		ids := w.submit(20)
		w.settle(10 * time.Second)
		for _, row := range w.rows(ids) {
			require.Contains(w, []layout.State{layout.Ready, layout.Delayed, layout.Claimed}, row.State())
			require.Zero(w, row.Attempts.Failed)
		}
		p.reform()
		w.settle(2 * time.Minute)
		w.requireEchoes(ids)
	})
}

// TestAQuietPeerAloneKeepsWhatItHas has a peer on trial say nothing until it is done.
func TestAQuietPeerAloneKeepsWhatItHas(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		w.meet("quiet", 4, func(p *fakePeer) {
			p.works = func(o *protocol.WorkOrderBatch) {
				if clock.Sleep(p.world.over, clock.Real{}, 4*time.Second) == nil {
					p.work(o)
				}
			}
		})
		ids := w.submit(2)
		w.settle(5 * time.Second)
		w.requireEchoes(ids)
		require.Equal(w, 1, w.runs(), "nobody else could run it")
	})
}

// TestTheWindowOfAPeer has a peer answer: it gets twice as much with each round, and after
// faults one item at a time.
func TestTheWindowOfAPeer(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.meet("p", 4096, func(p *fakePeer) { p.takes = 100 * time.Millisecond })
		require.Equal(w, 2, w.about("p").Limit)
		w.submit(1)
		w.settle(200 * time.Millisecond)
		require.Equal(w, 3, w.about("p").Limit)
		ids := w.submit(3000)
		w.settle(time.Minute)
		require.Len(w, w.rows(ids[:1]), 1)
		require.Greater(w, w.about("p").Limit, 2000)
		p.mu.Lock()
		p.run, p.takes = givesBack, 0
		p.mu.Unlock()
		w.submit(40)
		w.settle(2 * time.Second)
		require.LessOrEqual(w, w.about("p").Limit, 1)
	})
}

// TestLongFunctionsWidenTheWindow has functions that take hours: a peer that runs what it was
// given gets as much as it has slots within some heartbeats.
func TestLongFunctionsWidenTheWindow(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.meet("p", 16, func(p *fakePeer) { p.takes = time.Hour })
		w.submit(40)
		w.settle(900 * time.Millisecond)
		require.Equal(w, 2, p.items())
		w.settle(30 * time.Second)
		require.Equal(w, 16, p.items())
	})
}

// TestAHeadThatRestartsPassesOverWhatItsPeerRejected has a peer be another worker of the next
// head.
func TestAHeadThatRestartsPassesOverWhatItsPeerRejected(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.meet("p", 4, func(p *fakePeer) { p.run = givesBack })
		w.submit(1, func(s *layout.Spec) { s.Backoff = layout.Backoff{Base: 10 * time.Minute, Max: 10 * time.Minute} })
		w.settle(time.Second)
		require.Equal(w, 1, p.items())
		w.stop()
		w.start(peerhead.Options{})
		p.sayHello()
		w.settle(10 * time.Second)
		require.Equal(w, 1, p.items())
		w.settle(20 * time.Minute)
		require.Greater(w, p.items(), 1)
	})
}

// join has a peer say hello that the head takes for one that has answered much.
func (w *world) join(name string, slots int, change ...func(*fakePeer)) *fakePeer {
	w.Helper()
	p := w.meet(name, slots, change...)
	w.head.Prove(p.id)
	return p
}

// serve lets time pass until all futures have their results, for two minutes at most, and
// returns how long that took.
func (w *world) serve(ids []layout.ID) time.Duration {
	w.Helper()
	const step = 100 * time.Millisecond
	for took := step; took < 2*time.Minute; took += step {
		w.settle(step)
		open := slices.ContainsFunc(w.rows(ids), func(r layout.Row) bool { return r.State() != layout.Realized })
		if !open {
			w.requireEchoes(ids)
			return took
		}
	}
	return 2 * time.Minute
}

// startWorker starts a worker of the cluster in another process, which echoes.
func (w *world) startWorker(slots int) {
	w.Helper()
	c, err := fdbmodel.Open(w.over, w.store, "peers", fdbmodel.Options{Existing: true})
	require.NoError(w, err)
	worker, err := workers.FromCluster(c, workers.Options{Slots: slots})
	require.NoError(w, err)
	require.NoError(w, worker.Register("f", func(_ context.Context, args []byte) ([]byte, error) { return args, nil }))
	go func() { _ = worker.Run(w.over) }()
	<-worker.Ready()
}
