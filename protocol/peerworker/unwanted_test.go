package peerworker

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
)

// stopped has a head that no longer knows a chunk, and does not want some of its items, all if there are none.
func stopped(m *protocol.WorkOrderBatch, unwanted ...int) func(*protocol.WorkOrderProgress) *protocol.Ack {
	return func(p *protocol.WorkOrderProgress) *protocol.Ack {
		switch {
		case p.ChunkID != m.ChunkID:
			return &protocol.Ack{Code: protocol.CodeOK}
		case len(p.Order) == 0:
			return &protocol.Ack{Code: protocol.CodeConflict}
		case len(unwanted) == 0:
			return &protocol.Ack{Code: protocol.CodeGone}
		default:
			return &protocol.Ack{Code: protocol.CodeOK, Unwanted: unwanted}
		}
	}
}

// TestWhatAHeadNoLongerWantsDoesNotBegin has a worker die with a chunk that its head does not want after that.
func TestWhatAHeadNoLongerWantsDoesNotBegin(t *testing.T) {
	t.Parallel()
	for _, unwanted := range [][]int{nil, {0, 2, 99}} {
		n, h, o := withHead(t)
		o.State, o.Slots = t.TempDir(), 1
		w, called, _ := holding(t, o)
		r := start(t, w, n)
		m := goOrder("held", "a", "b", "c")
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
		<-called
		r.crash()

		n = newMemory()
		h = newHead(t, n, headID)
		h.told = stopped(m, unwanted...)
		o.Network = n
		w, called, release := holding(t, o)
		close(release)
		r = start(t, w, n)
		if unwanted != nil {
			all := h.all(m.ChunkID, 3)
			require.Equal(t, "b", string(all[1].Value))
			require.Equal(t, string(layout.KindCancelled), all[0].Kind)
			require.Equal(t, string(layout.KindCancelled), all[2].Kind)
			require.Equal(t, "b", <-called)
		}
		r.idle()
		require.Empty(t, called, "of all that is not wanted")
		h.set(func() {
			require.Equal(t, m.OrderMAC, h.progress[1].OrderMAC)
			for i, it := range h.progress[1].Order {
				require.Equal(t, m.Items[i].ID, it.ID)
				require.Equal(t, m.Items[i].Attempt, it.Attempt)
			}
		})
	}
}

// TestErrorsThatAreNoText has a function fail with bytes that are no UTF-8, each of which takes three in JSON: the
// head gets that, and the outcomes beside it.
func TestErrorsThatAreNoText(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	w, err := New(options(n))
	require.NoError(t, err)
	require.NoError(t, w.Register("f", func(_ context.Context, args []byte) ([]byte, error) {
		if len(args) == 0 {
			return nil, errors.New("binary: " + strings.Repeat("\xff", 3000) + strings.Repeat("a\xff", 2500))
		}
		return args, nil
	}))
	r := start(t, w, n)
	order := goOrder("f", "", "x")
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	outcomes := h.all(order.ChunkID, 2)
	require.Contains(t, outcomes[0].Message, "binary: \uFFFDa\uFFFD")
	require.LessOrEqual(t, len(outcomes[0].Message), fdbmodel.MaxMessage)
	require.Equal(t, "x", string(outcomes[1].Value))
	r.idle()
}

// TestWhatAHeadNoLongerWantsIsStopped has a head that was started again hear of a chunk whose items are over.
func TestWhatAHeadNoLongerWantsIsStopped(t *testing.T) {
	t.Parallel()
	n, h, o := withHead(t)
	w, called, _ := holding(t, o)
	r := start(t, w, n)
	gone, some := goOrder("held", "a"), goOrder("held", "b", "c")
	for _, m := range []*protocol.WorkOrderBatch{gone, some} {
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	}
	for range min(3, o.Slots) {
		<-called
	}
	all, others := stopped(gone), stopped(some, 0, 1)
	h.set(func() {
		h.told = func(p *protocol.WorkOrderProgress) *protocol.Ack {
			if ack := all(p); ack.Code != protocol.CodeOK {
				return ack
			}
			return others(p)
		}
	})
	r.idle()
	require.Len(t, h.all(some.ChunkID, 2), 2)
	require.Empty(t, h.outcomes[gone.ChunkID])
}
