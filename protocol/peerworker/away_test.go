package peerworker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/internal/signal"
	"github.com/futura-run/futura/protocol"
)

// TestWhatAHeadLeavesBehindIsForgotten has two heads leave a worker with a result and an item that
// runs: what the one has that the worker does not name is forgotten after awayFor, unless it came
// back meanwhile, and what the other one has stays.
func TestWhatAHeadLeavesBehindIsForgotten(t *testing.T) {
	t.Parallel()
	everyState(t, func(t *testing.T, n *memory, o Options) {
		const otherID = "12D3KooWOther"
		named, other := newHead(t, n, headID), newHead(t, n, otherID)
		moved := clock.NewVirtual(time.Unix(0, 0))
		o.AllowAnyHead, o.clock = true, moved
		w, called, release := holding(t, o)
		r := start(t, w, n)
		orders := map[*fakeHead][2]*protocol.WorkOrderBatch{}
		for _, h := range []*fakeHead{named, other} {
			h.set(func() {
				h.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack {
					return &protocol.Ack{Code: protocol.CodeUnavailable}
				}
			})
			done, held := goOrder("double", "a"), goOrder("held", h.id)
			orders[h] = [2]*protocol.WorkOrderBatch{done, held}
			require.Equal(t, protocol.CodeAccepted, h.order(done).Code)
			require.Equal(t, protocol.CodeAccepted, h.order(held).Code)
			<-called
		}
		chunks := func(h *fakeHead) int { return len(r.chunksOf(h.id)) }
		// looked waits until the worker has looked at what the time is now.
		looked := func() {
			for range 2 {
				signal.Send(r.news)
				require.Eventually(t, func() bool { return len(r.news) == 0 }, testTime, time.Millisecond)
			}
		}
		leave := func() {
			n.part(headID)
			n.part(otherID)
			looked()
		}
		leave()
		moved.Advance(awayFor - time.Second)
		looked()
		require.Equal(t, 2, chunks(other))
		n.connect(otherID)
		looked()
		leave()
		moved.Advance(awayFor - time.Second)
		looked()
		require.Equal(t, 2, chunks(other), "it was here meanwhile")
		moved.Advance(time.Second)
		signal.Send(r.news)
		require.Eventually(t, func() bool { return chunks(other) == 0 }, testTime, time.Millisecond)
		require.Equal(t, 2, chunks(named))
		close(release)
		named.set(func() {
			named.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack { return &protocol.Ack{Code: protocol.CodeOK} }
		})
		n.connect(headID)
		require.Equal(t, "aa", string(named.all(orders[named][0].ChunkID, 1)[0].Value))
		require.Equal(t, headID, string(named.all(orders[named][1].ChunkID, 1)[0].Value))
		r.idle()
	})
}
