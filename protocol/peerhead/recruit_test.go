package peerhead_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/peerhead"
)

// TestNodesTakePartAtOnce connects nodes to a head that looks after its peers once an hour:
// one before the cluster has a module, one after, and one that comes back.
func TestNodesTakePartAtOnce(t *testing.T) {
	inWorld(t, peerhead.Options{Manifest: manifestOf, Grace: 4 * time.Hour}, func(w *world) {
		first := w.node("first", protocol.DialectChunk)
		w.settle(time.Minute)
		require.Empty(w, first.calls, "there is nothing to install")
		ids := w.submitModules(0, "a")
		w.settle(1500 * time.Millisecond)
		require.NotEmpty(w, w.about("first").Worker)
		require.Equal(w, layout.Realized, w.rows(ids)[0].State())
		w.node("second", protocol.DialectChunk)
		w.settle(100 * time.Millisecond)
		require.NotEmpty(w, w.about("second").Worker)
		require.Len(w, first.calls, 2, "a call reaches all")
	})
}

// TestANodeThatDoesNotAnswerIsAskedAgain has a node miss what was published.
func TestANodeThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	inWorld(t, peerhead.Options{Manifest: manifestOf, Grace: 4 * time.Hour}, func(w *world) {
		w.submitModules(0, "a")
		n := w.node("deaf", protocol.DialectChunk)
		n.mu.Lock()
		n.silent = true
		n.mu.Unlock()
		w.settle(time.Minute)
		n.mu.Lock()
		calls := len(n.calls)
		n.silent = false
		n.mu.Unlock()
		require.Greater(w, calls, 2)
		require.Less(w, calls, 8)
		require.Empty(w, w.about("deaf").Worker)
		w.settle(20 * time.Second)
		require.NotEmpty(w, w.about("deaf").Worker)
	})
}
