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

func TestVerifyOptions(t *testing.T) {
	t.Parallel()
	for _, v := range []peerhead.Verify{{Peers: 2, Agree: 1}, {Peers: 2, Agree: 3}, {Peers: -1}, {Peers: 17, Agree: 17}} {
		inBadOptions(t, peerhead.Options{Verify: v})
	}
}
