package peerworker

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/protocol"
)

// each of its items has for itself.
func TestWhatItemsShareCountsForEach(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	o := options(n)
	o.Modules, o.MaxBytes = echoRunner{}, 4<<20
	w := run(t, o)
	text := strings.Repeat("x", 30_000)
	for _, config := range []protocol.Config{
		{Stdin: text}, {Environment: []batch.EnvVar{{Name: "X", Value: text}}},
	} {
		order := moduleOrder(cidOf(t, []byte("code")), make([][]string, 200)...)
		order.Template.Config = config
		require.Equal(t, protocol.CodeUnavailable, h.order(order).Code)
	}
	w.idle()
}

// they take more than it may keep, and goes on once the head has some.
func TestAHeadThatAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	h.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack { return nil }
	o := options(n)
	o.MaxBytes = 1 << 20
	w, err := New(o)
	require.NoError(t, err)
	var ran atomic.Int64
	require.NoError(t, w.Register("much", func(context.Context, []byte) ([]byte, error) {
		ran.Add(1)
		return make([]byte, 64<<10), nil
	}))
	r := start(t, w, n)
	const items = 1000
	order := goOrder("much", make([]string, items)...)
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	require.Eventually(t, w.full.Load, testTime, lookAgain/100)
	require.Less(t, ran.Load(), int64(items))
	require.Equal(t, protocol.CodeUnavailable, h.order(goOrder("much", "")).Code)
	h.set(func() {
		h.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack { return &protocol.Ack{Code: protocol.CodeOK} }
	})
	h.all(order.ChunkID, items)
	r.idle()
	require.False(t, w.full.Load())
}

// takes.
func TestOutputsThatNoReplyTakesAreNotKept(t *testing.T) {
	t.Parallel()
	w, h := runB7S(t, nil)
	var arguments [][]string
	for i := range 40 {
		arguments = append(arguments, []string{fmt.Sprint(i), "large"})
	}
	order := b7sOrderOf(t, arguments...)
	data, err := protocol.Encode(order, protocol.DialectChunk)
	require.NoError(t, err)
	h.sent = make(chan []byte) // so that the reply waits
	h.receive(data)
	w.awaitEnded(order)
	require.Less(t, w.Stats().Bytes, int64(keptOutput+discardBytes+4<<20))
	reply, err := protocol.Decode(h.next())
	require.NoError(t, err)
	said := 0
	for _, r := range reply.(*protocol.WorkOrderBatchResponse).Results {
		if r.OK() {
			said++
		} else {
			require.Contains(t, r.Result.Stderr, "no room in the reply")
		}
	}
	require.Positive(t, said)
	w.idle()
}
