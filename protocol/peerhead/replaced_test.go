package peerhead_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/peerhead"
)

// TestAPeerThatOffersSomethingElseEndsWhatItRuns has a peer change what it offers while it runs an item: what it says
// of that is taken at once, also that it failed.
func TestAPeerThatOffersSomethingElseEndsWhatItRuns(t *testing.T) {
	for name, x := range map[string]protocol.Outcome{
		"a result":  {Code: protocol.CodeOK, Value: []byte("0"), Codec: layout.CodecRaw},
		"a failure": {Code: protocol.CodeError},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, peerhead.Options{}, func(w *world) {
				p := w.join("p", 1, func(p *fakePeer) {
					p.takes = 3 * time.Second
					p.run = func(*protocol.WorkOrderBatch, int) protocol.Outcome { return x }
				})
				ids := w.submit(1, func(s *layout.Spec) { s.MaxRetries = 0 })
				w.settle(time.Second)
				before := w.head.Peers()[0].Worker
				p.hello.Functions = []string{"go:other"}
				require.Equal(w, protocol.CodeOK, p.sayHello().Code)
				require.NotEqual(w, before, w.head.Peers()[0].Worker)
				w.settle(4 * time.Second) // sooner than what it ran could be given back
				require.True(w, w.rows(ids)[0].State().Terminal(), "%v", w.rows(ids)[0].State())
				require.Equal(w, 1, w.runs())
			})
		})
	}
}

// TestANodeThatHasAnAttributeEndsWhatItRuns has a node of b7s be registered anew, with an attribute, while it runs an
// order: its reply counts.
func TestANodeThatHasAnAttributeEndsWhatItRuns(t *testing.T) {
	trusted := func(peerhead.PeerID) bool { return true }
	inWorld(t, peerhead.Options{Manifest: manifestOf, Trusted: trusted}, func(w *world) {
		n := w.node("node", protocol.DialectChunk).has("eu")
		reply := make(chan struct{})
		n.result = func(arguments []string) (protocol.NodeResult, bool) {
			select {
			case <-reply:
			case <-w.over.Done():
			}
			return protocol.NodeResult{Code: protocol.CodeOK, Result: protocol.Output{Stdout: arguments[0]}}, true
		}
		ids := w.submitModules(0, "a")
		w.settle(time.Minute)
		require.Equal(w, 1, n.ordered())
		before := w.head.Peers()[0].Worker
		w.head.Want(w.rows(ids)[0].Spec.Function, map[string]string{"zone": "eu"})
		w.settle(5 * time.Second)
		require.NotEqual(w, before, w.head.Peers()[0].Worker)
		close(reply)
		w.settle(5 * time.Second)
		require.Equal(w, layout.Realized, w.rows(ids)[0].State())
		require.Equal(w, 1, n.ordered())
		require.Zero(w, w.head.Peers()[0].Refused)
	})
}
