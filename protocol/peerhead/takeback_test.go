package peerhead_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/peerhead"
)

// oneAtATime makes a peer begin an item once the one before has ended, and give back what it
// has not begun. Each takes as long as takes says.
func oneAtATime(takes func(item string) time.Duration) func(*fakePeer) {
	return func(p *fakePeer) {
		given := map[string]map[int]bool{} // by chunk
		p.gives = func(m *protocol.TakeBack) {
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, i := range m.Indexes {
				given[m.ChunkID][i] = true
			}
		}
		lane := make(chan struct{}, 1)
		p.works = func(o *protocol.WorkOrderBatch) {
			answer := func(x protocol.Outcome) {
				p.tell(&protocol.WorkOrderBatchResponse{RequestID: o.RequestID, ChunkID: o.ChunkID, OrderMAC: o.OrderMAC,
					Partial: true, Outcomes: []protocol.Outcome{x}})
			}
			p.mu.Lock()
			given[o.ChunkID] = map[int]bool{}
			p.mu.Unlock()
			waiting := make(map[int]bool, len(o.Items))
			for i := range o.Items {
				waiting[i] = true
			}
			// report tells of progress, and gives back what the head wants.
			report := func(items ...int) {
				p.tell(&protocol.WorkOrderProgress{ChunkID: o.ChunkID, OrderMAC: o.OrderMAC, Running: len(items), Items: items})
				p.mu.Lock()
				var back []int
				for i := range given[o.ChunkID] {
					if waiting[i] {
						back = append(back, i)
						delete(waiting, i)
					}
				}
				p.mu.Unlock()
				for _, i := range back {
					answer(protocol.Outcome{Index: i, Code: protocol.CodeUnavailable})
				}
			}
			report()
			// Those that take the longest come first.
			order := slices.SortedStableFunc(maps.Keys(waiting), func(i, j int) int {
				return cmp.Compare(takes(string(o.Items[j].Args)), takes(string(o.Items[i].Args)))
			})
			for _, i := range order {
				for begun := false; !begun; {
					select {
					case lane <- struct{}{}:
						begun = true
					case <-time.After(time.Second):
						report()
					case <-p.world.over.Done():
						return
					}
				}
				p.mu.Lock()
				begins := waiting[i]
				delete(waiting, i)
				p.mu.Unlock()
				if begins {
					item := string(o.Items[i].Args)
					p.world.mu.Lock()
					p.world.ran[item]++
					p.world.mu.Unlock()
					for end := time.Now().Add(takes(item)); time.Now().Before(end); {
						select {
						case <-time.After(min(time.Second, time.Until(end))):
							report(i)
						case <-p.world.over.Done():
							return
						}
					}
					answer(p.run(o, i))
				}
				<-lane
			}
		}
	}
}

func always(d time.Duration) func(string) time.Duration {
	return func(string) time.Duration { return d }
}

// TestItemsThatWaitGoToPeersThatAreIdle has a peer claim more slots than it has. What waits
// there goes to a peer that joins later, at once and with no attempt counted, and runs once.
func TestItemsThatWaitGoToPeersThatAreIdle(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		slow := w.join("slow", 8, oneAtATime(always(time.Minute)))
		ids := w.submit(8)
		w.settle(5 * time.Second)
		require.Equal(w, 8, slow.items())
		require.Zero(w, w.about("slow").TakenBack, "nobody else is there")
		w.join("idle", 4)
		w.settle(5 * time.Second)
		taken := w.about("slow").TakenBack
		require.EqualValues(w, 7, taken)
		require.Less(w, w.about("slow").Score, 1.0, "its slots were not what it said")
		over := 0
		for _, row := range w.rows(ids) {
			if row.State() == layout.Realized {
				over++
				require.Equal(w, 1, row.Result.Attempt)
			}
		}
		require.Equal(w, 7, over)
		w.settle(2 * time.Minute)
		w.requireEchoes(ids)
		require.Equal(w, 1, w.runs())
	})
}

// TestALongItemHoldsUpNoneThatWasSentAhead has a peer whose items were short get a long one:
// what was sent ahead of its slot goes to another peer, which is no fault of the first.
func TestALongItemHoldsUpNoneThatWasSentAhead(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		takes := func(item string) time.Duration {
			if item == "0" {
				return time.Minute
			}
			return 100 * time.Microsecond
		}
		busy := w.join("busy", 1, oneAtATime(takes), func(p *fakePeer) {
			p.run = func(o *protocol.WorkOrderBatch, i int) protocol.Outcome {
				x := echo(o, i)
				x.Usage.WallClock = int64(100 * time.Microsecond)
				return x
			}
		})
		short := func(s *layout.Spec) { s.Label = "short" }
		w.submit(200, short) // it learns that they are short
		w.settle(2 * time.Minute)
		all := w.submit(100, short)[1:]
		w.settle(100 * time.Millisecond)
		require.Greater(w, busy.items(), 210, "some are sent ahead")
		w.join("idle", 64)
		w.settle(10 * time.Second)
		require.NotZero(w, w.about("busy").TakenBack)
		require.EqualValues(w, 1, w.about("busy").Score)
		done := 0
		for _, row := range w.rows(all) {
			if row.State() == layout.Realized {
				done++
			}
		}
		require.Equal(w, len(all), done, "nothing waits behind the long item")
		w.settle(2 * time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		total := 0
		for _, n := range w.ran {
			total += n
		}
		require.Equal(w, 300, total, "each ran once")
	})
}

// TestNothingIsTakenFromBusyPeersForBusyPeers has several slow peers and none that is idle.
func TestNothingIsTakenFromBusyPeersForBusyPeers(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		for i := range 3 {
			w.join(fmt.Sprint("slow", i), 4, oneAtATime(always(10*time.Second)))
		}
		w.join("other", 8, func(p *fakePeer) { p.hello.Functions = []string{"go:other"} })
		ids := w.submit(60)
		w.settle(20 * time.Second)
		for i := range 3 {
			require.Zero(w, w.about(peerhead.PeerID(fmt.Sprint("slow", i))).TakenBack)
		}
		w.settle(10 * time.Minute)
		w.requireEchoes(ids)
		require.Equal(w, 1, w.runs())
	})
}

// TestAPeerThatGivesNothingBackRunsItsItems has a peer that does not know the message: its
// items stay where they are.
func TestAPeerThatGivesNothingBackRunsItsItems(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		w.join("old", 4, oneAtATime(always(10*time.Second)), func(p *fakePeer) { p.gives = nil })
		ids := w.submit(4)
		w.settle(5 * time.Second)
		w.join("idle", 4)
		w.settle(5 * time.Minute)
		w.requireEchoes(ids)
		require.Equal(w, 1, w.runs())
		require.Zero(w, w.about("old").TakenBack)
		require.EqualValues(w, 1, w.about("old").Score)
	})
}

// TestWaitingIsNoTimeout has the only peer run items one after the other that take almost
// as long as they may. Those that wait there for long do not count as overdue.
func TestWaitingIsNoTimeout(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		w.join("p", 8, oneAtATime(always(5*time.Minute)))
		ids := w.submit(4, func(s *layout.Spec) { s.Timeout, s.MaxRetries = 6*time.Minute, 0 })
		w.settle(21 * time.Minute)
		w.requireEchoes(ids)
		require.Equal(w, 1, w.runs())
	})
}

// deaf loses the answers to take-backs.
type deaf struct{ *world }

// Call implements peerhead.Network.
func (d deaf) Call(ctx context.Context, to peerhead.PeerID, message []byte) ([]byte, error) {
	answer, err := d.world.Call(ctx, to, message)
	if m, _ := protocol.Decode(message); err == nil {
		if _, lost := m.(*protocol.TakeBack); lost {
			return nil, errAway
		}
	}
	return answer, err
}

// TestAPeerThatHeardGivesBackWithoutBlame has the answers be lost by which a peer says that it heard what it is to
// give back.
func TestAPeerThatHeardGivesBackWithoutBlame(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		w.stop()
		w.network = deaf{w}
		w.start(peerhead.Options{})
		w.join("slow", 8, func(p *fakePeer) {
			orders := map[string]*protocol.WorkOrderBatch{}
			p.works = func(o *protocol.WorkOrderBatch) {
				p.mu.Lock()
				orders[o.ChunkID] = o
				p.mu.Unlock()
				for clock.Sleep(w.over, clock.Real{}, time.Second) == nil {
					p.tell(&protocol.WorkOrderProgress{ChunkID: o.ChunkID, OrderMAC: o.OrderMAC, Running: 1, Items: []int{0}})
				}
			}
			p.gives = func(m *protocol.TakeBack) {
				elapse(time.Millisecond)
				p.mu.Lock()
				o := orders[m.ChunkID]
				p.mu.Unlock()
				r := protocol.WorkOrderBatchResponse{RequestID: o.RequestID, ChunkID: o.ChunkID, OrderMAC: o.OrderMAC,
					Partial: true}
				for _, i := range m.Indexes {
					r.Outcomes = append(r.Outcomes, protocol.Outcome{Index: i, Code: protocol.CodeUnavailable})
				}
				p.tell(&r)
			}
		})
		w.submit(8)
		w.settle(5 * time.Second)
		w.join("idle", 8)
		w.settle(5 * time.Second)
		require.NotZero(w, w.about("slow").TakenBack)
	})
}
