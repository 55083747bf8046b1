package peerhead

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/futura-run/futura/protocol"
)

// simNode is a node of b7s. It runs one order after the other, knows what it installed
// until it restarts, and answers with the results of an order once.
type simNode struct {
	w       *simWorld
	id      string
	dialect protocol.Dialect
	run     *simNodeRun
	busy    bool
}

// simNodeRun is one process of a node.
type simNodeRun struct {
	node *simNode
	ctx  context.Context
	end  context.CancelFunc
	turn chan struct{}

	mu        sync.Mutex
	installed map[string]bool
}

func (n *simNode) start() {
	r := &simNodeRun{node: n, installed: map[string]bool{}, turn: make(chan struct{}, 1)}
	r.ctx, r.end = context.WithCancel(n.w.over)
	n.w.set(func() { n.run = r })
	n.w.net.appear(n.id, r)
}

func (n *simNode) crash() {
	r := n.run
	n.w.set(func() { n.run = nil })
	n.w.net.disappear(n.id)
	r.end()
}

func (r *simNodeRun) lives() context.Context { return r.ctx }

func (r *simNodeRun) connected(string, bool, uint64) {}

// called is for what heads never do: nodes of b7s have no such protocol.
func (r *simNodeRun) called(context.Context, string, []byte) []byte {
	r.node.w.flaw("a head has called a node of b7s")
	return nil
}

func (r *simNodeRun) blob(context.Context, string, string) (io.ReadSeekCloser, int64, error) {
	return nil, 0, errSimAway
}

func (r *simNodeRun) received(ctx context.Context, from string, message []byte, _ bool) {
	m, err := protocol.Decode(message)
	if err != nil {
		r.node.w.flaw("a node was sent what can't be read: %v", err)
		return
	}
	switch m := m.(type) {
	case *protocol.InstallFunction:
		r.node.w.pass(ctx, r.node.w.delay(3*time.Second))
		r.mu.Lock()
		r.installed[m.CID] = true
		r.mu.Unlock()
		r.reply(ctx, from, &protocol.InstallFunctionResponse{Code: protocol.CodeAccepted, CID: m.CID})
	case *protocol.RollCall:
		r.reply(ctx, from, &protocol.RollCallResponse{Code: protocol.CodeAccepted, FunctionID: m.FunctionID,
			RequestID: m.RequestID, BatchSupport: m.Batch && r.node.dialect == protocol.DialectChunk})
	case *protocol.WorkOrderBatch:
		r.work(ctx, from, m)
	}
}

func (r *simNodeRun) reply(ctx context.Context, to string, m protocol.Message) {
	data, err := protocol.Encode(m, r.node.dialect)
	if err != nil {
		r.node.w.flaw("%v", err)
		return
	}
	_ = r.node.w.net.send(ctx, r.node.id, to, data, false) // as nodes do, once
}

// work runs an order. What is not installed it does not run, and says so by an empty code.
func (r *simNodeRun) work(ctx context.Context, from string, o *protocol.WorkOrderBatch) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return
	}
	w := r.node.w
	answer := &protocol.WorkOrderBatchResponse{RequestID: o.RequestID, ChunkID: o.ChunkID,
		Results: map[string]protocol.ItemResult{}}
	r.mu.Lock()
	if w.chance(0.05) {
		clear(r.installed) // as when somebody clears its directory
	}
	installed := r.installed[o.Template.FunctionID]
	r.mu.Unlock()
	w.count(&w.report.NodeOrders)
	for _, argv := range o.Arguments {
		result := protocol.NodeResult{}
		if installed {
			w.pass(ctx, time.Duration(w.draw(400))*time.Millisecond)
			out, code := w.runModule(argv)
			result = protocol.NodeResult{Code: protocol.CodeOK, Result: protocol.Output{Stdout: string(out), ExitCode: code}}
			if code != 0 {
				result.Code = protocol.CodeError
			}
		}
		if !w.chance(0.03) { // else it leaves the item out
			answer.Results[o.Template.ItemID(argv)] = protocol.ItemResult{NodeResult: result, Arguments: argv}
		}
	}
	if ctx.Err() == nil {
		r.reply(ctx, from, answer)
	}
}
