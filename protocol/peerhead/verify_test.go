package peerhead_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/peerhead"
)

func lie(order *protocol.WorkOrderBatch, i int) protocol.Outcome {
	return protocol.Outcome{Index: i, Code: protocol.CodeOK, Value: []byte("lie " + order.ChunkID)}
}

// TestALiarIsOutvoted has one of three peers lie. What two agree on counts, whoever claims.
func TestALiarIsOutvoted(t *testing.T) {
	inWorld(t, peerhead.Options{Verify: peerhead.Verify{Peers: 3, Agree: 2}}, func(w *world) {
		for i := range 2 {
			w.join(fmt.Sprint("honest", i), 8)
		}
		w.join("liar", 8, func(p *fakePeer) { p.run = lie })
		ids := w.submit(100)
		w.settle(10 * time.Minute)
		w.requireEchoes(ids)
		for _, p := range w.head.Peers() {
			if p.ID == "liar" {
				require.NotZero(w, p.Disagreed)
			} else {
				require.Zero(w, p.Disagreed)
			}
		}
	})
}

// TestPeersThatDisagree has all peers say something of their own: the attempts fail.
func TestPeersThatDisagree(t *testing.T) {
	inWorld(t, peerhead.Options{Verify: peerhead.Verify{Peers: 3, Agree: 2}}, func(w *world) {
		for i := range 3 {
			w.join(fmt.Sprint("liar", i), 8, func(p *fakePeer) { p.run = lie })
		}
		ids := w.submit(5, func(s *layout.Spec) { s.MaxRetries = 0 })
		w.settle(10 * time.Minute)
		for _, row := range w.rows(ids) {
			require.Equal(w, layout.Failed, row.State())
			require.Contains(w, row.Exception.Message, "no 2 of them agree")
		}
	})
}

// TestTooFewPeersToCompare has one peer where two must agree: the future waits for more.
func TestTooFewPeersToCompare(t *testing.T) {
	inWorld(t, peerhead.Options{Verify: peerhead.Verify{Peers: 3, Agree: 2}}, func(w *world) {
		w.join("one", 8)
		ids := w.submit(5)
		w.settle(time.Minute)
		for _, row := range w.rows(ids) {
			require.False(w, row.State() == layout.Realized || row.State() == layout.Failed)
			require.Zero(w, row.Attempts.Failed)
		}
		w.join("two", 8)
		w.settle(10 * time.Minute)
		w.requireEchoes(ids)
	})
}

// inDispute has an honest peer and a liar run an item, with a third one that is lost before it ends.
func inDispute(t *testing.T, check func(w *world, honest *fakePeer, ids []layout.ID)) {
	t.Helper()
	inWorld(t, peerhead.Options{Verify: peerhead.Verify{Peers: 3, Agree: 2}}, func(w *world) {
		honest := w.join("honest", 8)
		w.join("liar", 8, func(p *fakePeer) { p.run = lie })
		third := w.join("third", 1, func(p *fakePeer) { p.takes = time.Hour })
		ids := w.submit(8, func(s *layout.Spec) { s.MaxRetries = 0 })
		w.settle(10 * time.Second)
		require.Equal(w, layout.Claimed, w.stateOf(ids[7]))
		third.setAway(true)
		check(w, honest, ids)
		for _, row := range w.rows(ids) {
			require.Zero(w, row.Attempts.Failed)
		}
		require.Zero(w, w.about("honest").Disagreed)
	})
}

// TestAnotherPeerDecides in place of one that is lost.
func TestAnotherPeerDecides(t *testing.T) {
	inDispute(t, func(w *world, honest *fakePeer, ids []layout.ID) {
		w.join("fourth", 8)
		w.settle(10 * time.Minute)
		w.requireEchoes(ids)
		require.LessOrEqual(w, honest.items(), len(ids)+1, "it is not asked again, but for what the third one had claimed")
		require.NotZero(w, w.about("liar").Disagreed)
	})
}

// TestADisputeWaitsForAPeer that decides it: those who disagree don't run it over and over.
func TestADisputeWaitsForAPeer(t *testing.T) {
	inDispute(t, func(w *world, honest *fakePeer, ids []layout.ID) {
		w.settle(5 * time.Minute)
		for _, row := range w.rows(ids) {
			require.False(w, row.State().Terminal())
		}
		ran := honest.items()
		require.LessOrEqual(w, ran, 2*len(ids))
		w.settle(time.Hour)
		require.Equal(w, ran, honest.items())
		w.join("fourth", 8)
		w.settle(10 * time.Minute)
		w.requireEchoes(ids)
	})
}

// TestOneOfTwoComesBack and decides with the other one, which has answered before, what needs no third.
func TestOneOfTwoComesBack(t *testing.T) {
	inWorld(t, peerhead.Options{Verify: peerhead.Verify{Peers: 3, Agree: 2}}, func(w *world) {
		w.join("one", 8)
		two := w.join("two", 8, func(p *fakePeer) { p.takes = time.Hour })
		ids := w.submit(3)
		w.settle(10 * time.Second)
		two.setAway(true)
		w.settle(5 * time.Minute)
		for _, row := range w.rows(ids) {
			require.False(w, row.State().Terminal())
		}
		w.join("two", 8)
		w.settle(10 * time.Minute)
		w.requireEchoes(ids)
	})
}

// TestALiarHasOneVoice though it offers something else while others are asked: its new membership is not asked too.
func TestALiarHasOneVoice(t *testing.T) {
	inWorld(t, peerhead.Options{Verify: peerhead.Verify{Peers: 3, Agree: 2}}, func(w *world) {
		w.join("honest", 1, func(p *fakePeer) { p.takes = time.Minute })
		third := w.join("third", 1, func(p *fakePeer) { p.takes = time.Hour })
		liar := w.join("liar", 8, func(p *fakePeer) {
			p.run = func(_ *protocol.WorkOrderBatch, i int) protocol.Outcome {
				return protocol.Outcome{Index: i, Code: protocol.CodeOK, Value: []byte("lie"), Codec: layout.CodecRaw}
			}
		})
		made, err := w.cluster.Submit(t.Context(), []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f",
			Codec: layout.CodecRaw}, Args: []byte("0"), Assigned: layout.WorkerID(w.about("honest").Worker)}})
		require.NoError(w, err)
		ids := []layout.ID{made[0].ID}
		w.settle(5 * time.Second)
		require.Equal(w, 1, liar.items())
		liar.hello.Capacity.Slots = 7
		require.Equal(w, protocol.CodeOK, liar.sayHello().Code)
		w.settle(time.Second)
		third.setAway(true)
		w.settle(30 * time.Second)
		require.False(w, w.rows(ids)[0].State().Terminal())
		require.Equal(w, 1, liar.items())
		w.join("fourth", 1)
		w.settle(10 * time.Minute)
		w.requireEchoes(ids)
	})
}

// TestOptionsThatPeersCantBeTold has New refuse a name that no message carries, and queues that there can't be.
func TestOptionsThatPeersCantBeTold(t *testing.T) {
	t.Parallel()
	for _, o := range []peerhead.Options{
		{Name: strings.Repeat("n", protocol.MaxName+1)}, {Name: "a\nb"}, {Queues: []string{"default", "a b"}},
	} {
		inBadOptions(t, o)
	}
}

func TestVerifyOptions(t *testing.T) {
	t.Parallel()
	for _, v := range []peerhead.Verify{{Peers: 2, Agree: 1}, {Peers: 2, Agree: 3}, {Peers: -1}, {Peers: 17, Agree: 17}} {
		inBadOptions(t, peerhead.Options{Verify: v})
	}
}

// inVotes runs an item on three peers: one that answers first, and two that say something else.
func inVotes(t *testing.T, first, others protocol.Outcome, check func(w *world, row layout.Row)) {
	t.Helper()
	inWorld(t, peerhead.Options{Verify: peerhead.Verify{Peers: 3, Agree: 2}}, func(w *world) {
		w.blobs["b"] = []byte("value")
		for i, x := range []protocol.Outcome{first, others, others} {
			w.join([]string{"first", "second", "third"}[i], 8, func(p *fakePeer) {
				p.takes = time.Duration(i+1) * 100 * time.Millisecond
				p.run = func(_ *protocol.WorkOrderBatch, index int) protocol.Outcome {
					x.Index = index
					return x
				}
			})
		}
		ids := w.submit(1, func(s *layout.Spec) { s.MaxRetries = 3 })
		w.settle(900 * time.Millisecond)
		check(w, w.rows(ids)[0])
	})
}

// isDue has a future wait for a time that is so far away.
func isDue(within time.Duration) func(w *world, row layout.Row) {
	return func(w *world, row layout.Row) {
		require.Equal(w, layout.Delayed, row.State(), "%+v", row.Exception)
		require.WithinDuration(w, time.Now().Add(within), time.UnixMilli(row.Attempts.Due), time.Second)
	}
}

// goesOn has a future have further attempts soon, whatever it does at the moment.
func goesOn(w *world, row layout.Row) {
	require.NotEqual(w, layout.Failed, row.State(), "%+v", row.Exception)
	require.NotZero(w, row.Attempts.Failed)
	require.Less(w, row.Attempts.Due, time.Now().Add(time.Minute).UnixMilli())
}

// TestTheFirstVoiceAlone has one of three peers answer first what looks like the answer of the
// others, and means something else.
func TestTheFirstVoiceAlone(t *testing.T) {
	year, minute := (365 * 24 * time.Hour).Milliseconds(), time.Minute.Milliseconds()
	fails := func(permanent bool, wait *int64) protocol.Outcome {
		return protocol.Outcome{Code: protocol.CodeError, Kind: "error", Message: "no", Permanent: permanent, RetryMS: wait}
	}
	sleeps := func(millis int64) protocol.Outcome {
		return protocol.Outcome{Code: protocol.CodeAccepted, SnoozeMS: millis}
	}
	has := func(size int64) protocol.Outcome {
		return protocol.Outcome{Code: protocol.CodeOK, Blob: &protocol.Blob{ID: "b", Size: size}}
	}
	is := func(s layout.State) func(w *world, row layout.Row) {
		return func(w *world, row layout.Row) { require.Equal(w, s, row.State(), "%+v", row.Exception) }
	}
	for name, c := range map[string]struct {
		first, others protocol.Outcome
		check         func(w *world, row layout.Row)
		dissents      bool
	}{
		"permanent":            {fails(true, nil), fails(false, nil), goesOn, true},
		"no permanent failure": {fails(false, nil), fails(true, nil), is(layout.Failed), true},
		"again in a year":      {fails(false, &year), fails(false, nil), goesOn, true},
		"again later":          {fails(false, &year), fails(false, &minute), isDue(time.Minute), false},
		"asleep for a year":    {sleeps(year), protocol.Outcome{Code: protocol.CodeOK}, is(layout.Realized), true},
		"asleep for longer":    {sleeps(year), sleeps(minute), isDue(time.Minute), false},
		"a blob that is small": {has(1), has(5), is(layout.Realized), true},
	} {
		t.Run(name, func(t *testing.T) {
			inVotes(t, c.first, c.others, func(w *world, row layout.Row) {
				c.check(w, row)
				require.Equal(w, c.dissents, w.about("first").Disagreed > 0)
				require.Zero(w, w.about("second").Disagreed+w.about("third").Disagreed)
			})
		})
	}
}
