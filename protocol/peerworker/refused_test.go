package peerworker

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
)

// heldNetwork has messages of b7s's protocol wait, and tells of each.
type heldNetwork struct {
	*memory
	sends chan struct{}
	held  chan struct{}
}

func (n heldNetwork) Send(ctx context.Context, peer string, _ []byte) error {
	n.sends <- struct{}{}
	select {
	case <-n.held:
	case <-ctx.Done():
	}
	return errAway
}

// TestRefusalsOfStrangers has strangers give orders that are refused, and be gone when the worker answers. It keeps a
// bounded number of answers, and nothing of the strangers.
func TestRefusalsOfStrangers(t *testing.T) {
	t.Parallel()
	m := newMemory()
	n := heldNetwork{m, make(chan struct{}, 1000), make(chan struct{})}
	o := options(m)
	o.Network, o.AllowAnyHead = n, true
	w := run(t, o)
	for range 3 * maxRefusals {
		order := b7sOrderOf(t, []string{"a"})
		order.Template = protocol.Template{FunctionID: "go:none"}
		data, err := protocol.Encode(order, protocol.DialectChunk)
		require.NoError(t, err)
		m.handler.Received(t.Context(), "12D3KooW"+uuid.NewString(), data)
	}
	for range maxRefusals {
		<-n.sends
	}
	require.Empty(t, n.sends)
	close(n.held)
	for range maxRefusals {
		<-n.sends // again, after a wait
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Len(t, w.links, 1, "that of its head")
}

// TestHelloWithManyChunks has a worker introduce itself with more chunks than a message names.
func TestHelloWithManyChunks(t *testing.T) {
	t.Parallel()
	n := newMemory()
	newHead(t, n, headID)
	w := run(t, options(n))
	w.mu.Lock()
	for range protocol.MaxNames + 1 {
		name := chunkName{headID, uuid.NewString()}
		c := newChunk(w.Worker, name, &protocol.WorkOrderBatch{}, 2, nil)
		c.unsent++ // so that it has results too
		w.chunks[name] = c
	}
	w.mu.Unlock()
	m, err := w.hello(t.Context(), headID)
	w.mu.Lock()
	clear(w.chunks)
	w.mu.Unlock()
	require.NoError(t, err)
	_, err = protocol.Encode(m, protocol.DialectFutura)
	require.NoError(t, err)
	require.Len(t, m.Running, protocol.MaxNames)
}
