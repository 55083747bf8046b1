package peerworker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
)

// TestTheFirstReportComesSoon has a head with a long heartbeat be told of chunks that go on.
func TestTheFirstReportComesSoon(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	h.hello = func(*protocol.Hello) *protocol.HelloResponse {
		return &protocol.HelloResponse{Code: protocol.CodeOK, HeartbeatMS: maxHeartbeat.Milliseconds()}
	}
	o := options(n)
	o.DrainTimeout = 10 * time.Millisecond
	w := run(t, o)
	began := time.Now()
	for range 2 {
		order := goOrder("wait", "x")
		require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
		h.await("a report of it", func() bool {
			last := len(h.progress) - 1
			return last >= 0 && h.progress[last].ChunkID == order.ChunkID
		})
	}
	require.Less(t, time.Since(began), maxHeartbeat/2)
	require.Len(t, h.progress, 2, "each once")
	w.stop()
}
