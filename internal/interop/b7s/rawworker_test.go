//go:build linux

package b7s

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
)

// TestMessagesToHeadsOfB7s has peers made of the project's host and messages
// work for a head of b7s, and another one ask it for work.
func TestMessagesToHeadsOfB7s(t *testing.T) {
	for _, d := range dialects() {
		t.Run(d.branch, func(t *testing.T) {
			head := d.startHead(t)
			f := serveFunction(t, emptyModule())
			workers := []*rawWorker{startRawWorker(t, head), startRawWorker(t, head)}
			head.install(t, f, workers[0].asked, workers[1].asked)
			peers := []string{string(workers[0].peer.ID()), string(workers[1].peer.ID())}
			for _, count := range []int{100, 1000} {
				items := echoes(count)
				begun := time.Now()
				chunks := head.execute(t, f, len(workers), items)
				t.Logf("head of b7s %s: %d items in %s", d.branch, count, time.Since(begun).Round(100*time.Microsecond))
				checkChunks(t, f, chunks, peers, items)
			}
			asksAsClient(t, d, head, f, peers)
			items := append(echoes(4), []string{"bad", "fail"})
			checkChunks(t, f, head.execute(t, f, len(workers), items), peers, items)
		})
	}
}

// rawWorker is a peer that plays a worker.
type rawWorker struct {
	peer    raw
	once    sync.Once
	invited chan struct{} // closed by the first request to install
}

func startRawWorker(t *testing.T, head *node) *rawWorker {
	t.Helper()
	w := &rawWorker{invited: make(chan struct{})}
	w.peer = startRaw(t, func(r raw, a arrival) { w.take(t, r, a) }, head.address)
	return w
}

// asked waits until a head has asked the worker to install a function.
func (w *rawWorker) asked(ctx context.Context) bool {
	select {
	case <-w.invited:
		return true
	case <-ctx.Done():
		return false
	}
}

// take answers a head of b7s.
func (w *rawWorker) take(t *testing.T, r raw, a arrival) {
	var answer protocol.Message
	dialect := protocol.DialectChunk
	switch m := a.message.(type) {
	case *protocol.InstallFunction:
		w.once.Do(func() { close(w.invited) })
		answer = &protocol.InstallFunctionResponse{Code: protocol.CodeAccepted, Message: "installed", CID: m.CID}
	case *protocol.RollCall:
		answer = &protocol.RollCallResponse{
			Code: protocol.CodeAccepted, FunctionID: m.FunctionID, RequestID: m.RequestID, BatchSupport: m.Batch,
		}
	case *protocol.WorkOrderBatch:
		answer, dialect = run(m), m.Dialect
	default:
		t.Errorf("a worker got %T", m)
		return
	}
	data, err := protocol.Encode(answer, dialect)
	if err == nil {
		err = r.Send(context.Background(), a.from, data)
	}
	if err != nil && !errors.Is(err, p2p.ErrClosed) { // the test may end before Send returns
		t.Errorf("%T: %v", answer, err)
	}
}

// run does what the stand-in for b7s's runtime does, without a process.
func run(o *protocol.WorkOrderBatch) *protocol.WorkOrderBatchResponse {
	results := map[string]protocol.ItemResult{}
	for _, args := range o.Arguments {
		result := protocol.ItemResult{Invocation: o.Template.Invocation(), Arguments: args}
		result.Code, result.Result.Stdout = protocol.CodeOK, args[0]
		if slices.Contains(args, "fail") {
			result.Code, result.Result.ExitCode = protocol.CodeError, 3
		}
		results[o.Template.ItemID(args)] = result
	}
	return &protocol.WorkOrderBatchResponse{RequestID: o.RequestID, ChunkID: o.ChunkID, Results: results}
}

// asksAsClient sends a head of b7s a batch by a message.
func asksAsClient(t *testing.T, d dialect, head *node, f function, peers []string) {
	t.Helper()
	client := startRaw(t, nil)
	to, err := client.Connect(t.Context(), head.address)
	require.NoError(t, err)
	items := echoes(30)
	nodes := len(peers)
	client.send(t, to, d.spelling(), &protocol.ExecuteBatch{
		Template: protocol.Template{
			FunctionID: f.id, Method: method, Config: protocol.Config{Nodes: nodes},
		},
		Arguments: items, MaxAttempts: 3,
	})
	m := receive[*protocol.ExecuteBatchResponse](t, client, 1)[to]
	require.Equal(t, protocol.CodeOK, m.Code)
	require.True(t, m.AsSingle)
	require.Equal(t, d.spelling(), m.Dialect)
	found := 0
	for _, c := range m.Chunks {
		require.Contains(t, peers, c.Peer)
		for _, args := range items {
			if result, ok := c.Results[f.itemID(args)]; ok {
				require.True(t, result.OK())
				require.Equal(t, args[0], result.Result.Stdout)
				found++
			}
		}
	}
	require.Equal(t, len(items), found)
}
