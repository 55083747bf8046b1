package peerhead_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/peerhead"
)

// TestOrdersCarryTraces has futures of several traces in one order: each item has its own.
// A context that no message can carry is left out, and its future runs all the same.
func TestOrdersCarryTraces(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 8)
		traces := []map[string]string{
			{"traceparent": "00-a-1-01", "tracestate": "v=1"}, nil, {"traceparent": "00-b-2-01"},
			{"traceparent": strings.Repeat("x", protocol.MaxCarrier)}, {"tracestate": strings.Repeat("\xff", 5000)},
		}
		next := 0
		ids := w.submit(len(traces), func(s *layout.Spec) {
			s.Trace = traces[next]
			next++
		})
		w.settle(time.Minute)
		w.requireEchoes(ids)
		got := map[string]protocol.Carrier{}
		for _, o := range p.orders {
			require.Empty(w, o.Carrier)
			for _, item := range o.Items {
				got[item.ID] = item.Trace
			}
		}
		for i, want := range []protocol.Carrier{traces[0], nil, traces[2], nil, nil} {
			require.Equal(w, want, got[ids[i].String()], "future %d", i)
		}
	})
}

// TestTracesCountAsBytesOfOrders has traces of which two take more bytes than an order may.
func TestTracesCountAsBytesOfOrders(t *testing.T) {
	inWorld(t, peerhead.Options{MaxOrder: 4000}, func(w *world) {
		p := w.join("p", 8)
		ids := w.submit(6, func(s *layout.Spec) {
			s.Trace = map[string]string{"traceparent": "00-a-1-01", "tracestate": strings.Repeat("x", 2000)}
		})
		w.settle(time.Minute)
		w.requireEchoes(ids)
		require.Len(w, p.orders, len(ids))
	})
}

// TestOrdersOfB7SCarryATraceOfAll has a node of b7s get the context that all items of an
// order share, and none where they differ.
func TestOrdersOfB7SCarryATraceOfAll(t *testing.T) {
	for name, second := range map[string]string{"shared": "00-a-1-01", "different": "00-b-1-01"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, peerhead.Options{Manifest: manifestOf}, func(w *world) {
				n := w.node("node", protocol.DialectChunk)
				w.submitModules(0, "first")
				w.settle(time.Minute) // it takes part now
				module := w.rows(w.submitModules(0))
				require.Empty(w, module)
				modules, err := modules.Of(w.cluster).List(w.Context())
				require.NoError(w, err)
				subs := make([]fdbmodel.Submission, 2)
				for i, trace := range []string{"00-a-1-01", second} {
					subs[i].Spec = layout.Spec{Function: "wasm:" + modules[0].CID, Argv: []string{trace, strings.Repeat("x", i)},
						Trace: map[string]string{"traceparent": trace}}
				}
				_, err = w.cluster.Submit(w.Context(), subs)
				require.NoError(w, err)
				w.settle(time.Minute)
				last := n.got[len(n.got)-1]
				require.Len(w, last.Arguments, 2, "both are in one order")
				if name == "shared" {
					require.Equal(w, protocol.Carrier{"traceparent": "00-a-1-01"}, last.Carrier)
				} else {
					require.Empty(w, last.Carrier)
				}
			})
		})
	}
}

// TestAnswersToClientsHaveTheirTrace has a client ask for a batch within a trace.
func TestAnswersToClientsHaveTheirTrace(t *testing.T) {
	execute := func(context.Context, peerhead.PeerID, *protocol.ExecuteBatch) *protocol.ExecuteBatchResponse {
		return &protocol.ExecuteBatchResponse{Code: protocol.CodeOK}
	}
	inWorld(t, peerhead.Options{Execute: execute}, func(w *world) {
		got := make(chan protocol.Message, 1)
		w.mu.Lock()
		w.peers["client"] = &fakePeer{world: w, b7s: func(m protocol.Message) { got <- m }}
		w.mu.Unlock()
		trace := protocol.Envelope{Carrier: protocol.Carrier{"traceparent": "00-a-b-01"}}
		data, err := protocol.Encode(&protocol.ExecuteBatch{Envelope: trace, Arguments: [][]string{{}},
			Template: protocol.Template{FunctionID: "f", Method: "m"}}, protocol.DialectChunk)
		require.NoError(w, err)
		w.head.HandleMessage(w.Context(), "client", data, false)
		require.Equal(w, trace.Carrier, (<-got).Trace())
	})
}
