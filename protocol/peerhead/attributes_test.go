package peerhead_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerhead"
)

// submitIn submits a future of a module that requires a label.
func (w *world) submitIn(zone string) (function string, id layout.ID) {
	w.Helper()
	m, err := modules.Of(w.cluster).Put(w.Context(), []byte("\x00asm\x01\x00\x00\x00"), "")
	require.NoError(w, err)
	function = "wasm:" + m.CID
	made, err := w.cluster.Submit(w.Context(), []fdbmodel.Submission{{Spec: layout.Spec{Function: function,
		Argv: []string{zone}, Requirements: layout.Requirements{Labels: map[string]string{"zone": zone}}}}})
	require.NoError(w, err)
	return function, made[0].ID
}

// has makes a node answer roll calls for attributes as far as it has them.
func (n *b7sNode) has(zones ...string) *b7sNode {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.attributes = func(a *protocol.Attributes) bool {
		for _, zone := range zones {
			if len(a.Values) == 1 && a.Values[0] == (protocol.Parameter{Name: "zone", Value: zone}) {
				return true
			}
		}
		return false
	}
	return n
}

func (n *b7sNode) ordered() (items int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.got {
		items += len(o.Arguments)
	}
	return items
}

// TestNodesWithAttributesRunWhatRequiresThem has one of three nodes have an attribute, and a
// stranger say so that the head does not trust.
func TestNodesWithAttributesRunWhatRequiresThem(t *testing.T) {
	trusted := func(id peerhead.PeerID) bool { return id != "stranger" }
	inWorld(t, peerhead.Options{Manifest: manifestOf, Trusted: trusted}, func(w *world) {
		eu, us := w.node("eu", protocol.DialectChunk).has("eu"), w.node("us", protocol.DialectChunk).has("us")
		without, stranger := w.node("none", protocol.DialectChunk), w.node("stranger", protocol.DialectChunk).has("eu", "us")
		function, id := w.submitIn("eu")
		w.settle(time.Minute)
		require.Equal(w, layout.Ready, w.rows([]layout.ID{id})[0].State(), "nobody has said that it has the label")
		labels := map[string]string{"zone": "eu"}
		for range 3 {
			w.head.Want(function, labels) // at once is once
		}
		w.settle(10 * time.Second)
		require.Equal(w, layout.Realized, w.rows([]layout.ID{id})[0].State())
		require.Equal(w, 1, eu.ordered())
		require.Zero(w, us.ordered()+without.ordered()+stranger.ordered())
		asked := 0
		for _, call := range eu.calls {
			if call.Attributes != nil {
				asked++
				require.True(w, call.Batch)
			}
		}
		require.Equal(w, 1, asked)
		_, other := w.submitIn("us")
		w.head.Want(function, map[string]string{"zone": "us"})
		w.settle(20 * time.Second)
		require.Equal(w, layout.Realized, w.rows([]layout.ID{other})[0].State())
		require.Equal(w, 1, us.ordered())
		// What no roll call can ask for is not asked for.
		w.head.Want("go:f", labels)
		w.head.Want(function, nil)
		w.head.Want(function, map[string]string{layout.LabelPeer: "eu"})
		w.head.Want(function, map[string]string{"": "x"})
		w.settle(time.Minute)
	})
}

// TestANodeHasOneValueOfAnAttribute has a node say that it has two: the first counts.
func TestANodeHasOneValueOfAnAttribute(t *testing.T) {
	trusted := func(peerhead.PeerID) bool { return true }
	inWorld(t, peerhead.Options{Manifest: manifestOf, Trusted: trusted}, func(w *world) {
		n := w.node("node", protocol.DialectChunk).has("eu", "us")
		function, first := w.submitIn("eu")
		_, second := w.submitIn("us")
		w.settle(time.Minute)
		w.head.Want(function, map[string]string{"zone": "eu"})
		w.settle(time.Minute)
		w.head.Want(function, map[string]string{"zone": "us"})
		w.settle(time.Minute)
		rows := w.rows([]layout.ID{first, second})
		require.Equal(w, layout.Realized, rows[0].State())
		require.Equal(w, layout.Ready, rows[1].State())
		require.Equal(w, 1, n.ordered())
		require.Equal(w, "{zone=eu}", n.labels())
	})
}

// TestAttributesAreThoseOfAConnection has a node come back without the attribute that it had, and with another one.
func TestAttributesAreThoseOfAConnection(t *testing.T) {
	trusted := func(peerhead.PeerID) bool { return true }
	inWorld(t, peerhead.Options{Manifest: manifestOf, Trusted: trusted}, func(w *world) {
		n := w.node("node", protocol.DialectChunk).has("eu")
		function, first := w.submitIn("eu")
		w.settle(time.Minute)
		w.head.Want(function, map[string]string{"zone": "eu"})
		w.settle(time.Minute)
		require.Equal(w, layout.Realized, w.stateOf(first))
		require.Equal(w, "{zone=eu}", n.labels())
		n.has("us")
		w.head.Observe(p2p.Peer{ID: n.id, Connected: true, Session: 2, B7s: true})
		w.settle(time.Minute)
		require.Equal(w, "{zone=}", n.labels(), "it takes part again, and has said nothing of it")
		_, second := w.submitIn("us")
		_, third := w.submitIn("eu")
		w.head.Want(function, map[string]string{"zone": "eu"})
		w.head.Want(function, map[string]string{"zone": "us"})
		w.settle(time.Minute)
		require.Equal(w, layout.Realized, w.stateOf(second))
		require.Equal(w, layout.Ready, w.stateOf(third))
		require.Equal(w, "{zone=us}", n.labels())
		w.head.Observe(p2p.Peer{ID: n.id, Connected: true, Session: 2, B7s: true})
		w.settle(time.Minute)
		require.Equal(w, "{zone=us}", n.labels(), "the connection is the same")
	})
}

// TestAttributesThatCouldNotBeRegistered has a node tell of attributes faster than it may change what it offers. It is
// asked for them again.
func TestAttributesThatCouldNotBeRegistered(t *testing.T) {
	trusted := func(peerhead.PeerID) bool { return true }
	inWorld(t, peerhead.Options{Manifest: manifestOf, Trusted: trusted}, func(w *world) {
		n := w.node("node", protocol.DialectChunk)
		n.attributes = func(*protocol.Attributes) bool { return true }
		function, _ := w.submitIn("eu")
		w.settle(time.Minute)
		known := func() (labels int) {
			members, err := w.cluster.Workers(w.Context())
			require.NoError(w, err)
			for _, m := range members {
				if !m.Leaving {
					labels = max(labels, len(m.Labels)-1) // one names the peer
				}
			}
			return labels
		}
		const labels = 12
		want := func() {
			for i := range labels {
				w.head.Want(function, map[string]string{fmt.Sprint("label", i): "x"})
				w.settle(10 * time.Millisecond)
			}
		}
		want()
		require.Less(w, known(), labels)
		w.settle(time.Minute)
		want()
		w.settle(time.Minute)
		require.Equal(w, labels, known())
	})
}

// labels are those that the cluster knows of the node.
func (n *b7sNode) labels() string {
	members, err := n.world.cluster.Workers(n.world.Context())
	require.NoError(n.world, err)
	for _, m := range members {
		if m.Labels[layout.LabelPeer] == string(n.id) && !m.Leaving {
			return "{zone=" + m.Labels["zone"] + "}"
		}
	}
	return ""
}

// TestRollCallsForAttributesAreThoseOfB7S holds what is published to the golden message.
func TestRollCallsForAttributesAreThoseOfB7S(t *testing.T) {
	trusted := func(peerhead.PeerID) bool { return true }
	inWorld(t, peerhead.Options{Manifest: manifestOf, Trusted: trusted}, func(w *world) {
		w.node("node", protocol.DialectChunk).has("eu")
		function, _ := w.submitIn("eu")
		w.settle(time.Minute)
		w.head.Want(function, map[string]string{"zone": "eu"})
		w.settle(time.Minute)
		golden, err := os.ReadFile("../testdata/golden/roll_call_attributes.json")
		require.NoError(w, err)
		var want, got map[string]any
		require.NoError(w, json.Unmarshal(golden, &want))
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, m := range w.published {
			if strings.Contains(m, "attributes") {
				require.NoError(w, json.Unmarshal([]byte(m), &got))
			}
		}
		require.NotEmpty(w, got["request_id"])
		// These are another request's. Nobody attests, there is no trace, and no consensus.
		delete(want, "carrier")
		want["request_id"], want["consensus"] = got["request_id"], 0.0
		want["function_id"] = strings.TrimPrefix(function, "wasm:")
		want["attributes"] = map[string]any{"values": []any{map[string]any{"name": "zone", "value": "eu"}},
			"attestors": map[string]any{}}
		require.Equal(w, want, got)
	})
}
