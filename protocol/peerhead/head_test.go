package peerhead_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/peerhead"
)

func TestPeersRunFutures(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		for i := range 3 {
			w.join(fmt.Sprint("peer", i), 8)
		}
		ids := w.submit(300)
		w.settle(time.Minute)
		w.requireEchoes(ids)
		require.Equal(w, 1, w.runs())
		done := int64(0)
		for _, p := range w.head.Peers() {
			require.Zero(w, p.Orders)
			require.Zero(w, p.Refused)
			done += p.Done
		}
		require.EqualValues(w, 300, done)
	})
}

// TestEndingsOfItems has a peer end items in every way.
func TestEndingsOfItems(t *testing.T) {
	for name, c := range map[string]struct {
		outcome protocol.Outcome
		check   func(w *world, row layout.Row)
	}{
		"exit": {protocol.Outcome{Code: protocol.CodeError, ExitCode: 3, Stderr: []byte("why")},
			func(w *world, row layout.Row) {
				require.Equal(w, layout.KindExit, row.Exception.Kind)
				require.Equal(w, 3, row.Exception.ExitCode)
				require.Equal(w, "why", string(row.Exception.Stderr))
			}},
		"exit with a sign": {protocol.Outcome{Code: protocol.CodeError, Kind: "exit", ExitCode: -1},
			func(w *world, row layout.Row) { require.Equal(w, math.MaxUint32, row.Exception.ExitCode) }},
		"kind": {protocol.Outcome{Code: protocol.CodeError, Kind: "timeout", Message: "too long"},
			func(w *world, row layout.Row) {
				require.Equal(w, layout.KindTimeout, row.Exception.Kind)
				require.Equal(w, "too long", row.Exception.Message)
			}},
		"not run": {protocol.Outcome{}, func(w *world, row layout.Row) {
			require.Equal(w, layout.KindError, row.Exception.Kind, "no code is no success")
		}},
		"a kind that is no failure of a function": {protocol.Outcome{Code: protocol.CodeError, Kind: "cancelled"},
			func(w *world, row layout.Row) { require.Equal(w, layout.KindError, row.Exception.Kind) }},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, peerhead.Options{}, func(w *world) {
				w.join("p", 4, func(p *fakePeer) {
					p.run = func(_ *protocol.WorkOrderBatch, i int) protocol.Outcome {
						x := c.outcome
						x.Index = i
						return x
					}
				})
				ids := w.submit(1, func(s *layout.Spec) { s.MaxRetries = 0 })
				w.settle(time.Minute)
				row := w.rows(ids)[0]
				require.Equal(w, layout.Failed, row.State())
				c.check(w, row)
			})
		})
	}
}

// TestARestartedPeerHasANewFence has a peer restart while it has work. What its first
// process sends later counts for nothing that it was not given.
func TestARestartedPeerHasANewFence(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 4, func(p *fakePeer) { p.silent = true })
		ids := w.submit(4)
		w.settle(time.Second)
		before := w.head.Peers()[0].Worker
		require.Equal(w, 4, w.head.Peers()[0].Items)
		p.silent, p.hello.Incarnation = false, "fedcba9876543210"
		p.orders, p.kept = nil, map[string]*protocol.WorkOrderBatchResponse{}
		require.Equal(w, protocol.CodeOK, p.sayHello().Code)
		w.settle(10 * time.Second) // sooner than what it ran could be drained
		require.NotEqual(w, before, w.head.Peers()[0].Worker)
		w.requireEchoes(ids)
	})
}

// TestAPeerThatIsAwayIsReaped has one of two peers vanish with its work. Then it comes back
// with results, which change nothing any more.
func TestAPeerThatIsAwayIsReaped(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 8, func(p *fakePeer) { p.takes = time.Second })
		ids := w.submit(8)
		w.settle(time.Second / 2)
		p.setAway(true)
		w.settle(3 * time.Second)
		require.NotEmpty(w, w.head.Peers()[0].Worker, "it has its grace")
		w.join("q", 8)
		w.settle(time.Minute)
		w.requireEchoes(ids)
		require.Len(w, w.head.Peers(), 1, "it is forgotten")
		p.setAway(false)
		answer := p.sayHello()
		require.NotEmpty(w, answer.Wanted)
		for _, id := range answer.Wanted {
			require.Equal(w, protocol.CodeOK, p.deliver(id))
		}
		w.settle(time.Minute)
		w.requireEchoes(ids)
	})
}

// TestResultsOfAPartitionCount has a peer be away for longer than its grace and come back
// with results before anybody else has run the items: they are not run again.
func TestResultsOfAPartitionCount(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 8, func(p *fakePeer) { p.takes = time.Second })
		ids := w.submit(8)
		w.settle(time.Second / 2)
		p.setAway(true)
		w.settle(time.Minute)
		require.Empty(w, w.head.Peers())
		p.setAway(false)
		// The results come before the new membership has anything.
		for _, id := range p.unacknowledged() {
			p.hello.Capacity.Slots = 1
			require.Equal(w, protocol.CodeOK, p.sayHello().Code)
			require.Equal(w, protocol.CodeOK, p.deliver(id))
		}
		w.settle(10 * time.Minute)
		w.requireEchoes(ids)
		require.LessOrEqual(w, len(p.orders), 2, "at most what was claimed before the results came")
	})
}

// TestAHeadRestarts ends a head as a crash while a peer works, and starts another one,
// which takes what the peer has run.
func TestAHeadRestarts(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 8, func(p *fakePeer) { p.takes = time.Second })
		ids := w.submit(8)
		w.settle(time.Second / 2)
		p.setAway(true) // its messages reach nobody
		w.stop()
		w.settle(time.Minute)
		require.NotEmpty(w, p.unacknowledged())
		w.start(peerhead.Options{})
		p.setAway(false)
		answer := p.sayHello()
		require.Len(w, answer.Wanted, len(p.unacknowledged()))
		for _, id := range answer.Wanted {
			require.Equal(w, protocol.CodeOK, p.deliver(id))
		}
		w.settle(time.Minute)
		w.requireEchoes(ids)
	})
}

// TestForeignResultsChangeNothing has a peer answer for chunks, places and items that it
// was not given, twice, and with MACs of other orders.
func TestForeignResultsChangeNothing(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		honest := w.join("honest", 4, func(p *fakePeer) { p.takes = 10 * time.Second })
		liar := w.join("liar", 1, func(p *fakePeer) { p.hello.Functions = []string{"go:other"} })
		ids := w.submit(4)
		w.settle(time.Second)
		order := honest.orders[0]
		lie := protocol.Outcome{Code: protocol.CodeOK, Value: []byte("lie")}
		for _, r := range []*protocol.WorkOrderBatchResponse{
			{ChunkID: order.ChunkID, OrderMAC: order.OrderMAC, Outcomes: []protocol.Outcome{lie}},
			{ChunkID: order.ChunkID, OrderMAC: order.OrderMAC, Outcomes: []protocol.Outcome{lie}, Items: order.Items},
			{ChunkID: order.ChunkID, Outcomes: []protocol.Outcome{lie}, Items: order.Items},
			{ChunkID: "ab", OrderMAC: order.OrderMAC, Outcomes: []protocol.Outcome{lie}, Items: order.Items},
			{ChunkID: "ab", OrderMAC: order.OrderMAC, Outcomes: []protocol.Outcome{lie}},
		} {
			r.RequestID = r.ChunkID
			ack, ok := liar.tell(r).(*protocol.Ack)
			require.True(w, ok)
			require.NotEqual(w, protocol.CodeOK, ack.Code)
		}
		// The honest one can't answer for places that its order does not have.
		for _, mac := range []string{order.OrderMAC, "", "x"} {
			wrong := lie
			wrong.Index = len(order.Items)
			honest.tell(&protocol.WorkOrderBatchResponse{RequestID: order.ChunkID, ChunkID: order.ChunkID, OrderMAC: mac,
				Outcomes: []protocol.Outcome{wrong}})
		}
		w.settle(10 * time.Minute)
		w.requireEchoes(ids)
		// And nothing that it says of what is over counts.
		again := &protocol.WorkOrderBatchResponse{RequestID: order.ChunkID, ChunkID: order.ChunkID, OrderMAC: order.OrderMAC,
			Outcomes: []protocol.Outcome{lie}, Items: order.Items}
		honest.tell(again)
		w.settle(time.Minute)
		w.requireEchoes(ids)
	})
}

// TestProgressNeedsTheOrderMAC has a peer tell of an order's progress for a long time, with the
// MAC of the order and with others: only the first keeps the order.
func TestProgressNeedsTheOrderMAC(t *testing.T) {
	for name, keeps := range map[string]bool{"its own": true, "": false, "another": false} {
		t.Run("MAC "+name, func(t *testing.T) {
			inWorld(t, peerhead.Options{Patience: time.Hour}, func(w *world) {
				p := w.join("p", 1, func(p *fakePeer) { p.silent, p.takes = true, time.Hour })
				w.submit(1)
				w.settle(time.Second)
				order := p.orders[0]
				mac := name
				if keeps {
					mac = order.OrderMAC
				}
				for range 60 {
					p.tell(&protocol.WorkOrderProgress{ChunkID: order.ChunkID, OrderMAC: mac, Running: 1, Items: []int{0}})
					w.settle(time.Second)
				}
				require.Equal(w, keeps, len(p.orders) == 1, "%d orders", len(p.orders))
			})
		})
	}
}

// TestTheFirstAnswerCounts has a peer answer twice for one item before it is stored.
func TestTheFirstAnswerCounts(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 1, func(p *fakePeer) { p.silent = true })
		ids := w.submit(1)
		w.settle(time.Second)
		order := p.orders[0]
		r := &protocol.WorkOrderBatchResponse{RequestID: order.ChunkID, ChunkID: order.ChunkID, OrderMAC: order.OrderMAC,
			Outcomes: []protocol.Outcome{
				{Code: protocol.CodeOK, Value: []byte("0")}, {Code: protocol.CodeOK, Value: []byte("1")},
			}}
		require.Equal(w, protocol.CodeOK, p.tell(r).(*protocol.Ack).Code)
		w.requireEchoes(ids)
		require.EqualValues(w, 1, w.head.Peers()[0].Refused)
	})
}

// TestASilentPeerIsReaped has a peer take work and say nothing of it.
func TestASilentPeerIsReaped(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		w.join("silent", 4, func(p *fakePeer) { p.silent = true; p.takes = time.Hour })
		ids := w.submit(4)
		w.settle(time.Second)
		w.join("q", 4)
		w.settle(time.Minute)
		w.requireEchoes(ids)
	})
}

// TestABusyPeerIsNotReaped has a peer run for long, and report it.
func TestABusyPeerIsNotReaped(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("busy", 4, func(p *fakePeer) { p.takes = 10 * time.Minute })
		ids := w.submit(1)
		w.settle(11 * time.Minute)
		require.Len(w, p.orders, 1)
		w.requireEchoes(ids)
		require.Equal(w, 1, w.runs())
	})
}

// TestCancelReachesThePeer cancels a future that a peer runs.
func TestCancelReachesThePeer(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 4, func(p *fakePeer) { p.silent = true })
		ids := w.submit(2)
		w.settle(time.Second)
		_, err := w.cluster.CancelMany(context.Background(), ids[:1], "enough")
		require.NoError(w, err)
		w.settle(2 * time.Second)
		row := w.rows(ids)[0]
		require.Equal(w, layout.Failed, row.State())
		stops := 0
		for _, indexes := range p.stopped {
			stops += len(indexes)
		}
		require.Equal(w, 1, stops)
	})
}

// TestGoodbye has a peer leave: it returns one chunk, and finishes the others.
func TestGoodbye(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 8, func(p *fakePeer) { p.takes = 2 * time.Second })
		ids := w.submit(2)
		w.settle(time.Second)
		require.Equal(w, protocol.CodeOK, p.tell(&protocol.Goodbye{}).(*protocol.Ack).Code)
		more := w.submit(3)
		w.settle(time.Minute)
		w.requireEchoes(ids)
		for _, row := range w.rows(more) {
			require.Equal(w, layout.Ready, row.State(), "it takes no more")
		}
		require.Empty(w, w.head.Peers()[0].Worker)
	})
}

func TestHellosThatAreRefused(t *testing.T) {
	inWorld(t, peerhead.Options{MaxPeers: 1}, func(w *world) {
		p := w.join("p", 1)
		other := &fakePeer{world: w, id: "other", hello: p.hello}
		require.Equal(w, protocol.CodeUnavailable, other.sayHello().Code)
		for _, change := range []func(*protocol.Hello){
			func(h *protocol.Hello) { h.Capacity.Slots = 0 },
			func(h *protocol.Hello) { h.Functions = nil },
			func(h *protocol.Hello) { h.Functions = []string{"go:"} },
		} {
			hello := p.hello
			change(&hello)
			data := p.tell(&hello)
			if ack, refused := data.(*protocol.Ack); refused {
				require.Equal(w, protocol.CodeInvalid, ack.Code)
				continue
			}
			require.Equal(w, protocol.CodeInvalid, data.(*protocol.HelloResponse).Code)
		}
	})
}

// TestLabelsOfStrangersDontCount has two peers claim a label that a future requires.
func TestLabelsOfStrangersDontCount(t *testing.T) {
	trusted := func(id peerhead.PeerID) bool { return id == "friend" }
	inWorld(t, peerhead.Options{Trusted: trusted}, func(w *world) {
		label := func(p *fakePeer) { p.hello.Labels, p.hello.Name = map[string]string{"zone": "a"}, "n" }
		stranger := w.join("stranger", 4, label)
		ids := w.submit(4, func(s *layout.Spec) { s.Requirements.Labels = map[string]string{"zone": "a"} })
		w.settle(time.Minute)
		require.Empty(w, stranger.orders)
		w.join("friend", 4, label)
		w.settle(time.Minute)
		w.requireEchoes(ids)
	})
}

// TestLateResultsOfAnotherAttempt has a peer offer results of its earlier membership with a
// good MAC: a failure, which does not count, and a success of an attempt that has
// failed elsewhere meanwhile.
func TestLateResultsOfAnotherAttempt(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 4, func(p *fakePeer) { p.silent = true })
		ids := w.submit(2, func(s *layout.Spec) {
			s.MaxRetries, s.Backoff = 3, layout.Backoff{Base: 10 * time.Minute, Max: 10 * time.Minute}
		})
		w.settle(time.Second)
		p.setAway(true)
		w.settle(time.Minute) // reaped
		fails := w.join("fails", 1, func(p *fakePeer) {
			p.run = func(o *protocol.WorkOrderBatch, i int) protocol.Outcome {
				return protocol.Outcome{Index: i, Code: protocol.CodeError, Kind: "error"}
			}
		})
		w.settle(time.Minute)
		fails.setAway(true)
		w.settle(time.Minute)
		p.setAway(false)
		p.silent = false
		p.hello.Functions = []string{"go:other"} // it is not given them again
		require.Equal(w, protocol.CodeOK, p.sayHello().Code)
		order := p.orders[0]
		for _, x := range []protocol.Outcome{
			{Code: protocol.CodeOK, Value: []byte("late")}, {Code: protocol.CodeError, Kind: "error", Message: "late"},
		} {
			r := protocol.WorkOrderBatchResponse{RequestID: order.ChunkID, ChunkID: order.ChunkID, OrderMAC: order.OrderMAC,
				Items: order.Items}
			for i := range order.Items {
				x.Index = i
				r.Outcomes = append(r.Outcomes, x)
			}
			require.Equal(w, protocol.CodeOK, p.tell(&r).(*protocol.Ack).Code)
		}
		w.join("q", 4)
		w.settle(15 * time.Minute)
		w.requireEchoes(ids)
		for _, row := range w.rows(ids) {
			require.Equal(w, 2, row.Result.Attempt)
		}
	})
}

// TestLateFailuresDontCount has a peer offer a failure of its earlier membership: the
// attempt is run all the same.
func TestLateFailuresDontCount(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 4, func(p *fakePeer) { p.silent = true })
		ids := w.submit(1)
		w.settle(time.Second)
		p.setAway(true)
		w.settle(time.Minute) // reaped
		p.setAway(false)
		p.hello.Functions = []string{"go:other"}
		require.Equal(w, protocol.CodeOK, p.sayHello().Code)
		order := p.orders[0]
		require.Equal(w, protocol.CodeOK, p.tell(&protocol.WorkOrderBatchResponse{RequestID: order.ChunkID,
			ChunkID: order.ChunkID, OrderMAC: order.OrderMAC, Items: order.Items,
			Outcomes: []protocol.Outcome{{Code: protocol.CodeError, Kind: "error"}}}).(*protocol.Ack).Code)
		w.join("q", 4)
		w.settle(time.Minute)
		w.requireEchoes(ids)
		require.Equal(w, 1, w.rows(ids)[0].Result.Attempt)
	})
}

// TestAPeerLearnsWhatIsNoLongerWanted has a peer report on a chunk of an earlier membership while its items are waited
// for, and once they are cancelled, over, or another attempt.
func TestAPeerLearnsWhatIsNoLongerWanted(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 4, func(p *fakePeer) { p.silent = true })
		ids := w.submit(3, func(s *layout.Spec) { s.MaxRetries = 3 })
		w.settle(time.Second)
		p.setAway(true)
		w.settle(time.Minute) // reaped
		p.setAway(false)
		p.hello.Functions = []string{"go:other"}
		require.Equal(w, protocol.CodeOK, p.sayHello().Code)
		require.Len(w, p.orders, 1)
		order := p.orders[0]
		report := protocol.WorkOrderProgress{ChunkID: order.ChunkID, OrderMAC: order.OrderMAC, Running: 3}
		told := func() *protocol.Ack { return p.tell(&report).(*protocol.Ack) }
		require.Equal(w, protocol.CodeConflict, told().Code)
		report.Order = order.Items
		require.Equal(w, protocol.CodeOK, told().Code)
		require.Empty(w, told().Unwanted)
		report.OrderMAC = "x" + order.OrderMAC
		require.Equal(w, protocol.CodeGone, told().Code, "this chunk was never given")
		report.OrderMAC = order.OrderMAC

		place := func(id layout.ID) int {
			return slices.IndexFunc(order.Items, func(i protocol.OrderItem) bool { return i.ID == id.String() })
		}
		slow := w.join("slow", 4, func(p *fakePeer) { p.silent = true })
		w.settle(time.Second)
		_, _, err := w.cluster.Cancel(context.Background(), ids[0], "")
		require.NoError(w, err)
		require.Equal(w, layout.Claimed, w.rows(ids[:1])[0].State())
		require.Equal(w, []int{place(ids[0])}, told().Unwanted)
		slow.setAway(true)
		w.settle(time.Minute)
		require.Equal(w, []int{place(ids[0])}, told().Unwanted)
		w.join("fails", 1, func(p *fakePeer) {
			p.run = func(o *protocol.WorkOrderBatch, i int) protocol.Outcome {
				return protocol.Outcome{Index: i, Code: protocol.CodeError, Kind: "error"}
			}
		})
		w.settle(time.Second)
		require.Equal(w, protocol.CodeGone, told().Code, "the others are at their second attempt")

	})
}
