//go:build linux

package b7s

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
)

// spelling is that of a branch's messages.
func (d dialect) spelling() protocol.Dialect {
	if d.container == "strands" {
		return protocol.DialectStrand
	}
	return protocol.DialectChunk
}

// TestMessagesToWorkersOfB7s has a peer made of the project's host and messages
// work with two workers of b7s. One dials the peer, the other is dialled.
func TestMessagesToWorkersOfB7s(t *testing.T) {
	for _, d := range dialects() {
		t.Run(d.branch, func(t *testing.T) {
			h := rawHead{raw: startRaw(t, nil), dialect: d, f: serveFunction(t, emptyModule())}
			dialling := d.startWorker(t, "b7s worker that dials", h.Addrs()[0])
			dialled := d.startWorker(t, "b7s worker that is dialled")
			_, err := h.Connect(t.Context(), dialled.address)
			require.NoError(t, err)
			h.workers = []p2p.PeerID{p2p.PeerID(dialling.id), p2p.PeerID(dialled.id)}
			ctx, cancel := context.WithTimeout(t.Context(), startLimit)
			defer cancel()
			require.NoError(t, h.WaitTopicPeers(ctx, p2p.TopicGeneral, len(h.workers)))

			h.installs(t)
			h.callsRoll(t)
			for _, count := range []int{100, 1000} {
				begun := time.Now()
				h.orders(t, echoes(count))
				t.Logf("workers of b7s %s: %d items in %s", d.branch, count, time.Since(begun).Round(100*time.Microsecond))
			}
			h.orders(t, [][]string{{"a", "fail"}, {"b"}, {"c", "fail"}, {"d"}, {"e e"}, {"", "x"}})
			h.ordersLarge(t)
			h.ordersTwins(t)
			h.ordersUnknown(t)
			h.ordersOne(t)
		})
	}
}

// rawHead is a peer that plays a head.
type rawHead struct {
	raw
	dialect dialect
	f       function
	workers []p2p.PeerID
}

func (h rawHead) template() protocol.Template {
	return protocol.Template{FunctionID: h.f.id, Method: method}
}

func (h rawHead) installs(t *testing.T) {
	t.Helper()
	h.publish(t, h.dialect.spelling(), &protocol.InstallFunction{ManifestURL: h.f.manifest, CID: h.f.id})
	for _, m := range receive[*protocol.InstallFunctionResponse](t, h.raw, len(h.workers)) {
		require.Equal(t, &protocol.InstallFunctionResponse{
			Code: protocol.CodeAccepted, Message: "installed", CID: h.f.id,
		}, m)
	}
}

func (h rawHead) callsRoll(t *testing.T) {
	t.Helper()
	id := uuid.NewString()
	h.publish(t, protocol.DialectChunk, &protocol.RollCall{FunctionID: h.f.id, RequestID: id, Batch: true})
	for _, m := range receive[*protocol.RollCallResponse](t, h.raw, len(h.workers)) {
		require.Equal(t, &protocol.RollCallResponse{
			Code: protocol.CodeAccepted, FunctionID: h.f.id, RequestID: id,
			BatchSupport: h.dialect.spelling() == protocol.DialectChunk,
		}, m)
	}
}

// order sends each worker a chunk, and returns the answers.
func (h rawHead) order(t *testing.T, template protocol.Template,
	chunks map[p2p.PeerID][][]string) map[p2p.PeerID]*protocol.WorkOrderBatchResponse {
	t.Helper()
	request, ids := uuid.NewString(), map[p2p.PeerID]string{}
	for worker, arguments := range chunks {
		ids[worker] = uuid.NewString()
		h.send(t, worker, h.dialect.spelling(), &protocol.WorkOrderBatch{
			Template: template, RequestID: request, ChunkID: ids[worker], Arguments: arguments,
		})
	}
	answers := receive[*protocol.WorkOrderBatchResponse](t, h.raw, len(chunks))
	for worker, m := range answers {
		require.Equal(t, request, m.RequestID)
		require.Equal(t, ids[worker], m.ChunkID)
		require.Equal(t, h.dialect.spelling(), m.Dialect)
	}
	return answers
}

// deal gives the items to the workers in turn.
func (h rawHead) deal(items [][]string) map[p2p.PeerID][][]string {
	chunks := map[p2p.PeerID][][]string{}
	for i, args := range items {
		worker := h.workers[i%len(h.workers)]
		chunks[worker] = append(chunks[worker], args)
	}
	return chunks
}

// orders has the workers run items, and checks each result.
func (h rawHead) orders(t *testing.T, items [][]string) {
	t.Helper()
	chunks := h.deal(items)
	template := h.template()
	for worker, m := range h.order(t, template, chunks) {
		require.Len(t, m.Results, len(chunks[worker]))
		for _, args := range chunks[worker] {
			id := template.ItemID(args)
			require.Equal(t, h.f.itemID(args), id)
			require.Contains(t, m.Results, id)
			result := m.Results[id]
			failed := slices.Contains(args, "fail")
			require.Equal(t, !failed, result.OK(), "%q: %+v", args, result)
			require.Equal(t, args[0], result.Result.Stdout)
			require.Equal(t, args, result.Arguments)
			require.Equal(t, template.Invocation(), result.Invocation)
			if failed {
				require.Equal(t, protocol.Output{Stdout: args[0], Stderr: "asked to fail", ExitCode: 3}, result.Result)
			} else {
				require.Positive(t, result.Usage.WallClock)
			}
		}
	}
}

// ordersLarge has each worker answer with megabytes.
func (h rawHead) ordersLarge(t *testing.T) {
	t.Helper()
	const count, size = 400, 15_000
	items := make([][]string, count)
	for i := range items {
		items[i] = []string{strings.Repeat(string(rune('a'+i%26)), size+i)}
	}
	h.orders(t, items)
}

// ordersTwins has one worker run equal items, which share a result.
func (h rawHead) ordersTwins(t *testing.T) {
	t.Helper()
	worker := h.workers[0]
	answers := h.order(t, h.template(), map[p2p.PeerID][][]string{worker: {{"a b"}, {"a", "b"}, {"a b"}, {"c"}}})
	require.Len(t, answers[worker].Results, 2)
}

// ordersUnknown asks for a function that the worker does not have: it answers
// with exit code 0 and without a code.
func (h rawHead) ordersUnknown(t *testing.T) {
	t.Helper()
	template := protocol.Template{FunctionID: strings.Repeat("0", 64), Method: method}
	worker := h.workers[1]
	answers := h.order(t, template, map[p2p.PeerID][][]string{worker: {{"a"}}})
	result, ok := answers[worker].Results[template.ItemID([]string{"a"})]
	require.True(t, ok)
	require.Empty(t, result.Code)
	require.Zero(t, result.Result.ExitCode)
	require.False(t, result.OK())
}

// ordersOne has a worker run a single execution.
func (h rawHead) ordersOne(t *testing.T) {
	t.Helper()
	worker, id := h.workers[0], uuid.NewString()
	h.send(t, worker, h.dialect.spelling(), &protocol.WorkOrder{
		FunctionID: h.f.id, Method: method, RequestID: id, Timestamp: time.Now(),
		Arguments: []string{"solo"},
	})
	m := receive[*protocol.WorkOrderResponse](t, h.raw, 1)[worker]
	require.NotNil(t, m)
	require.Equal(t, id, m.RequestID)
	require.Equal(t, "solo", m.Result.Result.Stdout)
	require.True(t, m.Result.OK())
}
