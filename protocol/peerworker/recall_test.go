package peerworker

import (
	"bytes"
	"context"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// again starts a worker on what another one may have left, with a head that takes everything.
func again(t *testing.T, o Options, functions map[string]workers.Function) (*running, *fakeHead) {
	t.Helper()
	n, h := newNetwork(t, &o)
	w, err := New(o)
	require.NoError(t, err)
	for name, fn := range functions {
		require.NoError(t, w.Register(name, fn))
	}
	return start(t, w, n), h
}

// TestResultsOfAnySizeAreRemembered has a worker die with results that no head has: one in a
// message, one of several parts, and large ones, two of them equal.
func TestResultsOfAnySizeAreRemembered(t *testing.T) {
	t.Parallel()
	o := options(nil)
	o.State = t.TempDir()
	long := bytes.Repeat([]byte("0123456789"), 20_000)
	large := bytes.Repeat([]byte("0123456789abcdef"), 300_000)
	sized := map[string]workers.Function{"sized": func(_ context.Context, args []byte) ([]byte, error) {
		switch string(args) {
		case "long":
			return long, nil
		case "large":
			return large, nil
		case "larger":
			return append(large, 'x'), nil
		}
		return args, nil
	}}
	m := goOrder("sized", "short", "long", "large", "larger", "large")
	r, h := again(t, o, sized)
	h.keepsAll(m)
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	r.awaitEnded(m)
	var open []*spool
	r.blobs.mu.Lock()
	for _, sources := range r.blobs.known {
		for _, s := range sources {
			open = append(open, s.spool)
		}
	}
	r.blobs.mu.Unlock()
	require.Len(t, open, 3)
	r.crash()
	for _, s := range open {
		_, err := s.file.Stat()
		require.ErrorIs(t, err, os.ErrClosed)
	}

	r, h = again(t, o, nil)
	var fetched [][]byte
	h.set(func() {
		h.results = func(m *protocol.WorkOrderBatchResponse) *protocol.Ack {
			for _, x := range m.Outcomes {
				if x.Blob == nil {
					continue
				}
				content, size, err := r.net.handler.Blob(t.Context(), headID, x.Blob.ID)
				require.NoError(t, err)
				value, err := io.ReadAll(content)
				require.NoError(t, err)
				require.NoError(t, content.Close())
				require.Equal(t, size, int64(len(value)))
				fetched = append(fetched, value)
			}
			return &protocol.Ack{Code: protocol.CodeOK}
		}
	})
	r.net.part(headID)
	r.net.connect(headID)
	all := h.all(m.ChunkID, 5)
	require.Equal(t, "short", string(all[0].Value))
	require.Equal(t, long, all[1].Value)
	require.Equal(t, [][]byte{large, append(large, 'x'), large}, fetched)
	r.idle()
}

// TestWhatAHeadHasDoesNotRunAgain has a worker die once its head has most of a chunk.
func TestWhatAHeadHasDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	n, h, o := withState(t)
	w, called, _ := holding(t, o)
	r := start(t, w, n)
	const items = discardItems + 100
	m := goOrder("held", make([]string, items)...)
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	for range o.Slots {
		<-called
	}
	indexes := make([]int, 0, items)
	for i := o.Slots + 20; i < items; i++ {
		indexes = append(indexes, i)
	}
	require.Equal(t, protocol.CodeOK, h.order(&protocol.CancelOrder{ChunkID: m.ChunkID, Indexes: indexes}).Code)
	require.Eventually(t, func() bool {
		r.runner.mu.Lock()
		defer r.runner.mu.Unlock()
		return len(r.runner.items) == items-len(indexes)
	}, testTime, time.Millisecond)
	r.crash()

	n, h = newNetwork(t, &o)
	w, _, release := holding(t, o)
	close(release)
	r = start(t, w, n)
	h.await("the rest", func() bool { return h.last[m.ChunkID] })
	require.Len(t, h.outcomes[m.ChunkID], items-len(indexes))
	r.idle()
}

// TestWhatALaterChunkHadDoesNotRunAgain has a worker die after an item of a chunk that goes on was
// ordered again, and its result was acknowledged there.
func TestWhatALaterChunkHadDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	n, h, o := withState(t)
	w, called, _ := holding(t, o)
	r := start(t, w, n)
	m := goOrder("held", "a", "b")
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	<-called
	<-called
	later := goOrder("held", "a")
	later.Items[0] = m.Items[0]
	require.Equal(t, protocol.CodeAccepted, h.order(later).Code)
	c := r.chunk(chunkName{headID, later.ChunkID})
	require.Equal(t, protocol.CodeOK, h.order(&protocol.CancelOrder{ChunkID: later.ChunkID}).Code)
	<-c.gone
	r.crash()

	n, h = newNetwork(t, &o)
	w, called, release := holding(t, o)
	close(release)
	r = start(t, w, n)
	h.await("the rest", func() bool { return h.last[m.ChunkID] })
	require.Equal(t, "b", <-called)
	require.Empty(t, called)
	r.idle()
}

// TestARecalledChunkWaitsForItsHead has a head that forgets the worker between its hello and the report of a chunk, and
// then does not want the chunk: nothing of it runs.
func TestARecalledChunkWaitsForItsHead(t *testing.T) {
	t.Parallel()
	n, h, o := withState(t)
	w, called, _ := holding(t, o)
	r := start(t, w, n)
	require.Equal(t, protocol.CodeAccepted, h.order(goOrder("held", "a")).Code)
	<-called
	r.crash()

	n, h = newNetwork(t, &o)
	h.told = func(*protocol.WorkOrderProgress) *protocol.Ack {
		if len(h.hellos) == 1 {
			return &protocol.Ack{Code: protocol.CodeNotAuthorized}
		}
		return &protocol.Ack{Code: protocol.CodeGone}
	}
	w, called, _ = holding(t, o)
	r = start(t, w, n)
	h.await("the second hello", func() bool { return len(h.hellos) == 2 })
	r.idle()
	require.Empty(t, called)
}

// TestACancelIsRemembered has a worker die while an item that was cancelled still runs.
func TestACancelIsRemembered(t *testing.T) {
	t.Parallel()
	n, h, o := withState(t)
	made, called, release := deaf(t, o)
	r := start(t, made, n)
	m := goOrder("deaf", "a")
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	<-called
	cancel := &protocol.CancelOrder{ChunkID: m.ChunkID, Reason: "enough"}
	require.Equal(t, protocol.CodeOK, h.order(cancel).Code)
	n.part(headID)
	require.NoError(t, r.node.db.Close())
	close(release)
	require.Error(t, <-r.done)
	close(r.done)

	r, h = again(t, o, nil)
	require.Equal(t, "enough", h.all(m.ChunkID, 1)[0].Message)
	r.idle()
}

// TestAnOrderWhoseModuleHadNotComeIsRemembered has a worker die while it waits for a module.
func TestAnOrderWhoseModuleHadNotComeIsRemembered(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	h.stuck = true
	o := options(n)
	o.State, o.Modules = t.TempDir(), echoRunner{}
	r := run(t, o)
	code := []byte("\x00asm some module")
	m := moduleOrder(cidOf(t, code), []string{"a"}, []string{"b"})
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	cancel := &protocol.CancelOrder{ChunkID: m.ChunkID, Indexes: []int{1}}
	require.Equal(t, protocol.CodeOK, h.order(cancel).Code)
	r.crash()

	n = newMemory()
	h = newHead(t, n, headID)
	h.blobs[m.Module] = code
	o.Network = n
	r = run(t, o)
	all := h.all(m.ChunkID, 2)
	require.True(t, all[0].OK(), "%+v", all[0])
	require.Equal(t, "cancelled", all[1].Kind)
	r.idle()
}

// TestItemsThatCantRunAfterARestartAreGivenBack has the next worker lack their function.
func TestItemsThatCantRunAfterARestartAreGivenBack(t *testing.T) {
	t.Parallel()
	n, h, o := withState(t)
	w, called, _ := holding(t, o)
	r := start(t, w, n)
	m := goOrder("held", "a")
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	<-called
	r.crash()

	r, h = again(t, o, nil)
	got := h.all(m.ChunkID, 1)[0]
	require.Equal(t, protocol.CodeUnavailable, got.Code)
	require.Contains(t, got.Message, "not registered")
	r.idle()
}

// TestWhatACrashCutOffCounts has a store with half an order, and with a cancel that half an outcome
// has overwritten.
func TestWhatACrashCutOffCounts(t *testing.T) {
	t.Parallel()
	n, h, o := withState(t)
	w, called, _ := holding(t, o)
	r := start(t, w, n)
	whole, half := goOrder("held", "a"), goOrder("held", "b")
	for _, m := range []*protocol.WorkOrderBatch{whole, half} {
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
		<-called
	}
	require.NoError(t, r.journal.cancel(t.Context(), r.chunk(chunkName{headID, whole.ChunkID}), []int{0}, "enough"))
	require.NoError(t, r.node.transact(t.Context(), func(tx kv.Attempt) error {
		rest := func(m *protocol.WorkOrderBatch, kind string) []byte {
			return parts(rowKey(r.chunk(chunkName{headID, m.ChunkID}), kind, 0), make([]byte, maxPart+1))[0].Key
		}
		tx.Set(rest(whole, rowItem), []byte("rest"))
		first := parts(rowKey(r.chunk(chunkName{headID, half.ChunkID}), rowOrder, 0), nil)[0].Key
		order, err := tx.Get(first).Wait(t.Context())
		tx.Set(rest(half, rowOrder), order) // what could be read
		tx.Clear(first)
		return err
	}))
	r.crash()

	r, h = again(t, o, nil)
	require.Equal(t, "enough", h.all(whole.ChunkID, 1)[0].Message)
	r.idle()
	require.Empty(t, h.outcomes[half.ChunkID])
}
