package peerworker

import (
	"bytes"
	"runtime/pprof"
	"strings"
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

// TestNothingWaitsForAForgottenHead has a head that the worker does not name leave with a result, for good. It counts
// the goroutines of all workers, so no other test runs beside it.
func TestNothingWaitsForAForgottenHead(t *testing.T) {
	delivering := func() int {
		var all bytes.Buffer
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&all, 2))
		return strings.Count(all.String(), "peerworker.(*chunk).deliver(")
	}
	before := delivering()
	n := newMemory()
	o, moved := options(n), clock.NewVirtual(time.Unix(0, 0))
	o.AllowAnyHead, o.clock = true, moved
	const otherID = "12D3KooWOther"
	newHead(t, n, headID)
	other := newHead(t, n, otherID)
	refused := make(chan struct{}, 1)
	other.set(func() {
		other.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack {
			signal.Send(refused)
			return &protocol.Ack{Code: protocol.CodeUnavailable}
		}
	})
	w, _, release := holding(t, o)
	close(release)
	r := start(t, w, n)
	require.Equal(t, protocol.CodeAccepted, other.order(goOrder("double", "a")).Code)
	<-refused
	n.part(otherID)
	for range 2 { // the worker has seen it when it has looked twice
		signal.Send(r.news)
		require.Eventually(t, func() bool { return len(r.news) == 0 }, testTime, time.Millisecond)
	}
	moved.Advance(awayFor)
	signal.Send(r.news)
	gone := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.chunks) == 0 && r.links[otherID] == nil
	}
	require.Eventually(t, gone, testTime, time.Millisecond)
	require.Eventually(t, func() bool { return delivering() == before }, testTime, 10*time.Millisecond)
	require.True(t, gone(), "nothing makes the link again")
}
