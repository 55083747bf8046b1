package peerworker

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
)

// BenchmarkItems runs items that do nothing, in chunks of 14 of which 16 are under
// way, for a head in memory.
func BenchmarkItems(b *testing.B) {
	b.Run("memory", func(b *testing.B) { runItems(b, "") })
	b.Run("on disk", func(b *testing.B) { runItems(b, b.TempDir()) })
}

func runItems(b *testing.B, state string) {
	n, h, o := withHead(b)
	o.State = state
	w, err := New(o)
	require.NoError(b, err)
	require.NoError(b, w.Register("nothing", func(context.Context, []byte) ([]byte, error) { return nil, nil }))
	start(b, w, n)
	const chunk, under = 14, 16
	slots := make(chan struct{}, under)
	done := make(chan struct{}, b.N/chunk+1)
	h.set(func() {
		h.results = func(m *protocol.WorkOrderBatchResponse) *protocol.Ack {
			if !m.Partial {
				<-slots
				done <- struct{}{}
			}
			return &protocol.Ack{Code: protocol.CodeOK}
		}
	})
	args := make([]string, chunk)
	chunks := 0
	b.ResetTimer()
	for ; chunks*chunk < b.N; chunks++ {
		slots <- struct{}{}
		require.Equal(b, protocol.CodeAccepted, h.order(goOrder("nothing", args...)).Code)
	}
	for range chunks {
		<-done
	}
}
