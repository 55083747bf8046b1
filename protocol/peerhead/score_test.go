package peerhead_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/peerhead"
)

// about is what the head knows of a peer.
func (w *world) about(id peerhead.PeerID) peerhead.Peer {
	w.Helper()
	for _, p := range w.head.Peers() {
		if p.ID == id {
			return p
		}
	}
	require.FailNow(w, "no such peer", "%s", id)
	return peerhead.Peer{}
}

// items is how many items a peer was given.
func (p *fakePeer) items() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.orders {
		n += len(o.Items)
	}
	return n
}

func givesBack(_ *protocol.WorkOrderBatch, i int) protocol.Outcome {
	return protocol.Outcome{Index: i, Code: protocol.CodeUnavailable, Message: "not here"}
}

// TestAPeerThatFailsGetsLess has one of two peers give back what it gets: soon it gets an
// item at a time, and the cluster knows that it has no more slots. Then it recovers.
func TestAPeerThatFailsGetsLess(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		good, bad := w.join("good", 16), w.join("bad", 16, func(p *fakePeer) { p.run = givesBack })
		work := func(items int) []layout.ID {
			ids := w.submit(items, func(s *layout.Spec) { s.Backoff = layout.Backoff{Base: time.Millisecond, Max: time.Second} })
			w.settle(time.Second)
			return ids
		}
		for range 30 {
			work(40)
		}
		about := w.about("bad")
		require.Less(w, about.Score, 0.5)
		require.LessOrEqual(w, about.Limit, 4)
		require.Equal(w, 16, about.Slots)
		w.settle(6 * time.Second) // a heartbeat
		members, err := w.cluster.Workers(w.Context())
		require.NoError(w, err)
		for _, m := range members {
			if string(m.ID) == about.Worker {
				require.LessOrEqual(w, m.Heartbeat.Free.Slots, 8, "heads of batches see it")
			}
		}
		before, others := bad.items(), good.items()
		for range 10 {
			work(40)
		}
		require.Less(w, 2*(bad.items()-before), good.items()-others)
		require.EqualValues(w, 1, w.about("good").Score)
		require.Equal(w, 16, w.about("good").Limit)

		bad.reform()
		w.settle(6 * time.Minute)
		require.Greater(w, w.about("bad").Score, 0.8, "it is forgiven")
		good.setAway(true)
		ids := work(100)
		w.settle(time.Minute)
		w.requireEchoes(ids)
		require.Greater(w, w.about("bad").Limit, 10, "it has answered")
	})
}

// TestAPeerShowsThatItHasRecovered has a peer fail and then answer: that counts more than
// the time that passes.
func TestAPeerShowsThatItHasRecovered(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 16, func(p *fakePeer) { p.run = givesBack })
		w.submit(64, func(s *layout.Spec) { s.Backoff = layout.Backoff{Base: time.Millisecond, Max: time.Millisecond} })
		w.settle(200 * time.Millisecond)
		low := w.about("p")
		require.Less(w, low.Limit, 8)
		p.reform()
		w.settle(10 * time.Second)
		require.Greater(w, w.about("p").Score, 0.95)
		require.GreaterOrEqual(w, w.about("p").Limit, 15)
	})
}

// TestErrorsOfFunctionsAreNoFaults has a peer whose functions fail, and one that says that
// they do without a code.
func TestErrorsOfFunctionsAreNoFaults(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		w.join("p", 4, func(p *fakePeer) {
			p.run = func(_ *protocol.WorkOrderBatch, i int) protocol.Outcome {
				return protocol.Outcome{Index: i, Code: protocol.CodeError, ExitCode: 3}
			}
		})
		w.submit(100, func(s *layout.Spec) { s.MaxRetries = 0 })
		w.settle(time.Minute)
		require.EqualValues(w, 100, w.about("p").Failed)
		require.EqualValues(w, 1, w.about("p").Score)
	})
}

// TestAPeerThatLosesOrdersIsRemembered has a peer die with its work, and come back as if
// nothing had been: its score is that of before, and gets better with time.
func TestAPeerThatLosesOrdersIsRemembered(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 16, func(p *fakePeer) { p.takes = time.Hour })
		w.submit(16)
		w.settle(time.Second)
		p.setAway(true)
		w.settle(12 * time.Second)
		require.Empty(w, w.head.Peers(), "it is forgotten")
		p.setAway(false)
		p.reform()
		require.Equal(w, protocol.CodeOK, p.sayHello().Code)
		about := w.about("p")
		require.Less(w, about.Score, 0.6)
		require.Less(w, about.Limit, 8)
		w.settle(6 * time.Minute)
		require.Greater(w, w.about("p").Score, 0.8)
	})
}

// TestScoresOfAbsentPeersAreBounded has many strangers say what is wrong and go.
func TestScoresOfAbsentPeersAreBounded(t *testing.T) {
	inWorld(t, peerhead.Options{MaxPeers: 4}, func(w *world) {
		for i := range 20 {
			p := w.join(fmt.Sprint("stranger", i), 1)
			for range i + 1 {
				p.tell(&protocol.WorkOrderBatchResponse{RequestID: "ab", ChunkID: "ab", OrderMAC: "forged",
					Items:    []protocol.OrderItem{{ID: "01995b4e-6f3a-7c1e-9d2b-0123456789ab", Attempt: 1}},
					Outcomes: []protocol.Outcome{{Code: protocol.CodeOK}}})
			}
			require.Less(w, w.about(p.id).Score, 1.0)
			p.setAway(true)
			w.settle(12 * time.Second)
		}
		require.LessOrEqual(w, w.head.Absent(), 4)
		require.NotZero(w, w.head.Absent())
	})
}

// TestALiarIsAskedLessOften has one of four peers lie where two of three have to agree.
func TestALiarIsAskedLessOften(t *testing.T) {
	inWorld(t, peerhead.Options{Verify: peerhead.Verify{Peers: 3, Agree: 2}}, func(w *world) {
		all := []*fakePeer{w.join("liar", 8, func(p *fakePeer) { p.run = lie })}
		for i := range 4 {
			all = append(all, w.join(fmt.Sprint("honest", i), 8))
		}
		for range 10 {
			ids := w.submit(40)
			w.settle(20 * time.Second)
			w.requireEchoes(ids)
		}
		require.Less(w, w.about("liar").Score, 1.0)
		others := 0
		for _, honest := range all[1:] {
			others += honest.items()
		}
		require.Less(w, 1.1*float64(all[0].items()), float64(others)/4)
	})
}
