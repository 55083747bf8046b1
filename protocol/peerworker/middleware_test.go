package peerworker

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// streamRunner says as the result of a module whether its output is streamed.
type streamRunner struct{}

func (streamRunner) RunModule(_ context.Context, call workers.ModuleCall) (workers.ModuleOutcome, error) {
	text := []byte("held")
	if call.Output != nil {
		text = []byte("streamed")
	}
	return workers.ModuleOutcome{Stdout: text}, nil
}

// TestMiddlewareThatPassesOnLetsOutputStream runs a module within middleware of both kinds.
func TestMiddlewareThatPassesOnLetsOutputStream(t *testing.T) {
	t.Parallel()
	for passesOn, want := range map[bool]string{false: "held", true: "streamed"} {
		n := newMemory()
		h := newHead(t, n, headID)
		o, called := options(n), make(chan struct{}, 1)
		o.Modules, o.StreamsOutput = streamRunner{}, passesOn
		o.Middleware = []workers.Middleware{func(next workers.Call) workers.Call {
			called <- struct{}{}
			return next
		}}
		w := run(t, o)
		code := []byte("\x00asm some module")
		cid := cidOf(t, code)
		h.set(func() { h.blobs[cid] = code })
		m := moduleOrder(cid, []string{})
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
		require.Equal(t, want, string(h.all(m.ChunkID, 1)[0].Value))
		<-called
		w.idle()
	}
}
