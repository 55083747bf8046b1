package peerhead

import (
	"sync"

	"github.com/futura-run/futura/protocol"
)

// rollCalls are those whose answers are waited for.
type rollCalls struct {
	mu   sync.Mutex
	open map[string]*rollCall // by their requests
}

// rollCall is one of them.
type rollCall struct {
	function string
	answers  chan Answer
	answered map[PeerID]bool
}

// maxAnswers bounds the answers that wait to be looked at.
const maxAnswers = 10_000

func (r *rollCalls) begin(call *protocol.RollCall) <-chan Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &rollCall{function: call.FunctionID, answers: make(chan Answer, maxAnswers), answered: map[PeerID]bool{}}
	r.open[call.RequestID] = c
	return c.answers
}

func (r *rollCalls) end(call *protocol.RollCall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, call.RequestID)
}

// answer takes the first answer of a peer to a roll call.
func (r *rollCalls) answer(from PeerID, m *protocol.RollCallResponse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.open[m.RequestID]
	if c == nil || c.function != m.FunctionID || c.answered[from] {
		return
	}
	select {
	case c.answers <- Answer{Peer: from, Accepted: m.Code == protocol.CodeAccepted, BatchSupport: m.BatchSupport}:
		c.answered[from] = true
	default:
	}
}
