package peerworker

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// traced is a worker whose function returns the trace of its future.
func traced(t *testing.T, n *memory) *running {
	w, err := New(options(n))
	require.NoError(t, err)
	require.NoError(t, w.Register("trace", func(ctx context.Context, _ []byte) ([]byte, error) {
		info, _ := workers.InfoFrom(ctx)
		return []byte(info.Trace["traceparent"]), nil
	}))
	return start(t, w, n)
}

// TestFunctionsContinueTheTraceOfTheirItem has items of two traces in an order.
func TestFunctionsContinueTheTraceOfTheirItem(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	w := traced(t, n)
	m := goOrder("trace", "", "", "")
	m.Items[0].Trace = protocol.Carrier{"traceparent": "00-a-1-01"}
	m.Items[2].Trace = protocol.Carrier{"traceparent": "00-b-1-01"}
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	all := h.all(m.ChunkID, 3)
	for i, want := range []string{"00-a-1-01", "", "00-b-1-01"} {
		require.Equal(t, want, string(all[i].Value), "item %d", i)
	}
	w.idle()
}

// TestOrdersOfB7SContinueTheirTrace has a head of b7s send the context in the envelope, and
// get it back.
func TestOrdersOfB7SContinueTheirTrace(t *testing.T) {
	t.Parallel()
	n := newMemory()
	n.b7s = true
	h := newHead(t, n, headID)
	w := traced(t, n)
	trace := protocol.Envelope{Carrier: protocol.Carrier{"traceparent": "00-a-1-01"}}
	data, err := protocol.Encode(&protocol.WorkOrderBatch{Envelope: trace,
		Template: protocol.Template{FunctionID: "go:trace", Method: "m"}, RequestID: "a", ChunkID: "b",
		Arguments: [][]string{{"x"}}}, protocol.DialectChunk)
	require.NoError(t, err)
	n.handler.Received(t.Context(), headID, data)
	answer, err := protocol.Decode(<-h.sent)
	require.NoError(t, err)
	require.Equal(t, trace.Carrier, answer.Trace())
	for _, r := range answer.(*protocol.WorkOrderBatchResponse).Results {
		require.Equal(t, "00-a-1-01", r.Result.Stdout)
	}
	w.idle()
}

func TestATraceWithoutRoomIsLeftOut(t *testing.T) {
	t.Parallel()
	spec := layout.Spec{Argv: []string{strings.Repeat("x", layout.MaxMeta-100)}}
	setTrace(&spec, protocol.Carrier{"traceparent": strings.Repeat("x", 100)})
	require.Nil(t, spec.Trace)
	setTrace(&spec, protocol.Carrier{"a": "b"})
	require.NotNil(t, spec.Trace)
}
