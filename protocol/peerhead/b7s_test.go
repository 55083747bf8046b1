package peerhead_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerhead"
)

// b7sNode is a node of b7s as the head sees it.
type b7sNode struct {
	*fakePeer
	dialect protocol.Dialect
	// refuses leaves out the answer to installations.
	refuses bool
	// result makes the result of an item; it echoes the first argument by default, and fails
	// if that is "fail".
	result func(arguments []string) (protocol.NodeResult, bool)

	// attributes says whether the node has some. By default it has none.
	attributes func(*protocol.Attributes) bool

	mu        sync.Mutex
	installed map[string]int
	calls     []*protocol.RollCall
	got       []*protocol.WorkOrderBatch
}

// node connects a node of b7s.
func (w *world) node(name string, d protocol.Dialect) *b7sNode {
	n := &b7sNode{dialect: d, installed: map[string]int{}, result: func(arguments []string) (protocol.NodeResult, bool) {
		if arguments[0] == "fail" {
			return protocol.NodeResult{Code: protocol.CodeError, Result: protocol.Output{Stderr: "asked", ExitCode: 3}}, true
		}
		return protocol.NodeResult{Code: protocol.CodeOK, Result: protocol.Output{Stdout: arguments[0]}}, true
	}}
	n.fakePeer = &fakePeer{world: w, id: peerhead.PeerID(name), b7s: n.take}
	w.mu.Lock()
	w.peers[n.id] = n.fakePeer
	w.mu.Unlock()
	w.head.Observe(p2p.Peer{ID: n.id, Connected: true, Session: 1, B7s: true})
	return n
}

func (n *b7sNode) send(m protocol.Message) {
	data, err := protocol.Encode(m, n.dialect)
	require.NoError(n.world, err)
	n.world.head.HandleMessage(context.Background(), n.id, data, false)
}

func (n *b7sNode) take(m protocol.Message) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch m := m.(type) {
	case *protocol.InstallFunction:
		if n.installed[m.CID]++; !n.refuses {
			go n.send(&protocol.InstallFunctionResponse{Code: protocol.CodeAccepted, CID: m.CID})
		}
	case *protocol.RollCall:
		n.calls = append(n.calls, m)
		if n.silent || m.Attributes != nil && (n.attributes == nil || !n.attributes(m.Attributes)) {
			return
		}
		go n.send(&protocol.RollCallResponse{Code: protocol.CodeAccepted, FunctionID: m.FunctionID, RequestID: m.RequestID,
			BatchSupport: m.Batch && n.dialect == protocol.DialectChunk})
	case *protocol.WorkOrderBatch:
		n.got = append(n.got, m)
		go n.work(m)
	}
}

func (n *b7sNode) work(o *protocol.WorkOrderBatch) {
	r := &protocol.WorkOrderBatchResponse{RequestID: o.RequestID, ChunkID: o.ChunkID,
		Results: map[string]protocol.ItemResult{}}
	for _, arguments := range o.Arguments {
		if result, answered := n.result(arguments); answered {
			r.Results[o.Template.ItemID(arguments)] = protocol.ItemResult{NodeResult: result, Arguments: arguments}
		}
	}
	n.send(r)
}

// submitModules submits futures of a module of the cluster.
func (w *world) submitModules(retries int, arguments ...string) []layout.ID {
	w.Helper()
	m, err := modules.Of(w.cluster).Put(context.Background(), []byte("\x00asm\x01\x00\x00\x00"), "")
	require.NoError(w, err)
	var subs []fdbmodel.Submission
	for _, a := range arguments {
		subs = append(subs, fdbmodel.Submission{Spec: layout.Spec{Function: "wasm:" + m.CID, Argv: []string{a},
			MaxRetries: retries}})
	}
	made, err := w.cluster.Submit(context.Background(), subs)
	require.NoError(w, err)
	ids := make([]layout.ID, len(made))
	for i := range made {
		ids[i] = made[i].ID
	}
	return ids
}

func manifestOf(cid string) string { return "http://head/" + cid }

// TestNodesOfB7SRunModules has nodes of both dialects install a module, answer a roll call
// for batches, and run what they are given, equal items in orders of their own.
func TestNodesOfB7SRunModules(t *testing.T) {
	for _, d := range []protocol.Dialect{protocol.DialectChunk, protocol.DialectStrand} {
		t.Run(d.String(), func(t *testing.T) {
			inWorld(t, peerhead.Options{Manifest: manifestOf, AdmitStrand: true}, func(w *world) {
				n := w.node("node", d)
				arguments := []string{"same", "same", "same", "fail"}
				for i := range 50 {
					arguments = append(arguments, fmt.Sprint(i))
				}
				ids := w.submitModules(0, arguments...)
				w.settle(5 * time.Minute)
				for i, row := range w.rows(ids) {
					if arguments[i] == "fail" {
						require.Equal(w, layout.KindExit, row.Exception.Kind)
						require.Equal(w, 3, row.Exception.ExitCode)
						continue
					}
					require.Equal(w, layout.Realized, row.State(), "%+v", row.Exception)
					require.Equal(w, arguments[i], string(row.Result.Value))
				}
				require.Equal(w, 1, len(n.installed))
				require.True(w, n.calls[0].Batch)
				for _, o := range n.got {
					seen := map[string]bool{}
					for _, a := range o.Arguments {
						require.False(w, seen[a[0]], "equal items never share a chunk")
						seen[a[0]] = true
					}
				}
			})
		})
	}
}

// TestNodesThatAreLeftOut has a node that does not say that it supports batches, one that
// does not install, and one that is not even asked. None is given anything.
func TestNodesThatAreLeftOut(t *testing.T) {
	inWorld(t, peerhead.Options{Manifest: manifestOf}, func(w *world) {
		old, deaf := w.node("old", protocol.DialectStrand), w.node("deaf", protocol.DialectChunk)
		deaf.refuses = true
		ids := w.submitModules(0, "a")
		w.settle(5 * time.Minute)
		require.Equal(w, layout.Ready, w.rows(ids)[0].State())
		require.NotEmpty(w, old.calls)
		require.Empty(w, old.got)
		require.NotEmpty(w, deaf.installed)
		require.Empty(w, deaf.got)
		members, err := w.cluster.Workers(context.Background())
		require.NoError(w, err)
		require.Empty(w, members)
	})
}

// TestANodeThatRunsNothing has a node answer with the empty code of b7s, and leave results
// out: that is no success, and counts no attempt.
func TestANodeThatRunsNothing(t *testing.T) {
	for name, answered := range map[string]bool{"empty code": true, "no result": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, peerhead.Options{Manifest: manifestOf}, func(w *world) {
				n := w.node("node", protocol.DialectChunk)
				echo := n.result
				n.result = func([]string) (protocol.NodeResult, bool) { return protocol.NodeResult{}, answered }
				ids := w.submitModules(0, "a")
				w.settle(2 * time.Minute)
				row := w.rows(ids)[0]
				require.False(w, row.State() == layout.Realized || row.State() == layout.Failed)
				require.Zero(w, row.Attempts.Failed)
				n.mu.Lock()
				n.result = echo
				n.mu.Unlock()
				w.settle(10 * time.Minute)
				require.Equal(w, layout.Realized, w.rows(ids)[0].State())
			})
		})
	}
}

// TestANodeThatReconnects has the connection to a node end while it has work: nothing says
// what became of that, so it goes to another one at once.
func TestANodeThatReconnects(t *testing.T) {
	inWorld(t, peerhead.Options{Manifest: manifestOf}, func(w *world) {
		n := w.node("node", protocol.DialectChunk)
		n.result = func([]string) (protocol.NodeResult, bool) {
			<-w.over.Done()
			return protocol.NodeResult{}, false
		}
		ids := w.submitModules(0, "a")
		w.settle(time.Minute)
		require.NotEmpty(w, n.got)
		w.node("other", protocol.DialectChunk)
		n.mu.Lock()
		n.refuses = true // it does not come back soon
		n.mu.Unlock()
		w.head.Observe(p2p.Peer{ID: n.id, Connected: true, Session: 2, B7s: true})
		w.settle(2 * time.Minute)
		synctest.Wait()
		require.Equal(w, layout.Realized, w.rows(ids)[0].State())
	})
}

// TestWhatANodeCantBeSentRunsElsewhere has a node of b7s claim a future whose standard
// input is no text: it goes back, uncharged, and a peer that can be sent it runs it.
func TestWhatANodeCantBeSentRunsElsewhere(t *testing.T) {
	inWorld(t, peerhead.Options{Manifest: manifestOf}, func(w *world) {
		n := w.node("node", protocol.DialectChunk)
		w.submitModules(0, "a")
		w.settle(2 * time.Minute)
		require.NotEmpty(w, n.got)
		modules, err := modules.Of(w.cluster).List(context.Background())
		require.NoError(w, err)
		binary := []byte{0xff, 0xfe, 0}
		made, err := w.cluster.Submit(context.Background(), []fdbmodel.Submission{{
			Spec: layout.Spec{Function: "wasm:" + modules[0].CID}, Args: binary,
		}})
		require.NoError(w, err)
		w.settle(time.Minute)
		ids := []layout.ID{made[0].ID}
		row := w.rows(ids)[0]
		require.False(w, row.State().Terminal(), "%+v", row.Exception)
		require.Zero(w, row.Attempts.Failed)
		w.join("peer", 4)
		w.settle(10 * time.Minute)
		row = w.rows(ids)[0]
		require.Equal(w, layout.Realized, row.State())
		require.Equal(w, binary, row.Result.Value)
	})
}

// TestMemoryIsInPagesForNodesOfB7S has a future require some bytes of memory, of which the last begins a page.
func TestMemoryIsInPagesForNodesOfB7S(t *testing.T) {
	inWorld(t, peerhead.Options{Manifest: manifestOf}, func(w *world) {
		n := w.node("node", protocol.DialectChunk)
		w.submitModules(0, "first")
		w.settle(2 * time.Minute)
		require.Nil(w, n.got[0].Template.Config.Runtime)
		m, err := modules.Of(w.cluster).List(context.Background())
		require.NoError(w, err)
		_, err = w.cluster.Submit(context.Background(), []fdbmodel.Submission{{Spec: layout.Spec{
			Function: "wasm:" + m[0].CID, Argv: []string{"a"},
			Requirements: layout.Requirements{RAM: 20*protocol.MemoryPage + 1},
		}}})
		require.NoError(w, err)
		w.settle(2 * time.Minute)
		require.EqualValues(w, 21, n.got[1].Template.Config.Runtime.Memory)
	})
}

// TestLongTimeoutsOfAnOrder has a node of b7s be given items that may take 100 years each: it is not overdue at once.
func TestLongTimeoutsOfAnOrder(t *testing.T) {
	inWorld(t, peerhead.Options{Manifest: manifestOf}, func(w *world) {
		n := w.node("node", protocol.DialectChunk)
		n.result = func(arguments []string) (protocol.NodeResult, bool) {
			elapse(10 * time.Second)
			return protocol.NodeResult{Code: protocol.CodeOK, Result: protocol.Output{Stdout: arguments[0]}}, true
		}
		w.submitModules(0, "first")
		w.settle(2 * time.Minute)
		w.head.Prove(n.id)
		m, err := modules.Of(w.cluster).List(context.Background())
		require.NoError(w, err)
		var subs []fdbmodel.Submission
		for _, a := range []string{"a", "b", "c", "d"} {
			subs = append(subs, fdbmodel.Submission{Spec: layout.Spec{Function: "wasm:" + m[0].CID, Argv: []string{a},
				Timeout: protocol.MaxTime}})
		}
		made, err := w.cluster.Submit(context.Background(), subs)
		require.NoError(w, err)
		before := w.head.Peers()[0].Worker
		w.settle(5 * time.Second)
		require.Equal(w, before, w.head.Peers()[0].Worker)
		w.settle(2 * time.Minute)
		for i := range made {
			require.Equal(w, layout.Realized, w.stateOf(made[i].ID))
		}
	})
}
