package peerworker

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// everyState runs a test with a worker that keeps items in memory, and with one that has a
// store.
func everyState(t *testing.T, test func(t *testing.T, n *memory, o Options)) {
	for _, state := range []string{"memory", "on disk"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			n := newMemory()
			o := options(n)
			if state == "on disk" {
				o.State = t.TempDir()
			}
			test(t, n, o)
		})
	}
}

// sameAttempts is another order of what an order has.
func sameAttempts(m *protocol.WorkOrderBatch) *protocol.WorkOrderBatch {
	again := *m
	again.ChunkID = uuid.NewString()
	return &again
}

// keepsAll is a head that acknowledges nothing of some chunks, so that a worker does not forget
// them.
func (h *fakeHead) keepsAll(of *protocol.WorkOrderBatch) {
	h.set(func() {
		h.results = func(m *protocol.WorkOrderBatchResponse) *protocol.Ack {
			if m.ChunkID == of.ChunkID {
				return &protocol.Ack{Code: protocol.CodeUnavailable}
			}
			return &protocol.Ack{Code: protocol.CodeOK}
		}
	})
}

// TestACancelIsOfItsOrder cancels attempts before they begin, while they run and heed it, and
// while they run and don't, and orders them again before the first order is forgotten: the
// second is never answered with the cancel of the first, and attempts don't run beside
// themselves.
func TestACancelIsOfItsOrder(t *testing.T) {
	t.Parallel()
	everyState(t, func(t *testing.T, n *memory, o Options) {
		h := newHead(t, n, headID)
		o.Slots = 2
		made, err := New(o)
		require.NoError(t, err)
		var calls atomic.Int64
		var running sync.Map
		began, stopped, end := make(chan struct{}, 10), make(chan struct{}, 10), make(chan struct{})
		require.NoError(t, made.Register("work", func(ctx context.Context, args []byte) ([]byte, error) {
			_, runs := running.LoadOrStore(string(args), true)
			assert.False(t, runs, "%s runs beside itself", args)
			defer running.Delete(string(args))
			n := calls.Add(1)
			if n > 2 {
				return args, nil
			}
			began <- struct{}{}
			<-ctx.Done()
			if stopped <- struct{}{}; n == 2 {
				<-end // it does not heed the cancel
			}
			return nil, context.Cause(ctx)
		}))
		w := start(t, made, n)
		m := goOrder("work", "a", "b", "c")
		h.keepsAll(m)
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
		<-began
		<-began
		require.Equal(t, protocol.CodeOK, h.order(&protocol.CancelOrder{ChunkID: m.ChunkID}).Code)
		again := sameAttempts(m)
		require.Equal(t, protocol.CodeAccepted, h.order(again).Code)
		<-stopped
		<-stopped
		close(end)
		for i, x := range h.all(again.ChunkID, 3) {
			require.Equal(t, protocol.CodeOK, x.Code, "%+v", x)
			require.Equal(t, string(m.Items[i].Args), string(x.Value))
		}
		require.EqualValues(t, 5, calls.Load())
		h.keepsAll(again)
		w.idle()
	})
}

// TestAResultInSpiteOfACancelAnswersBothOrders has a function return its result although it was
// told to stop: it is not run again.
func TestAResultInSpiteOfACancelAnswersBothOrders(t *testing.T) {
	t.Parallel()
	everyState(t, func(t *testing.T, n *memory, o Options) {
		h := newHead(t, n, headID)
		began, end := make(chan struct{}, 10), make(chan struct{})
		w, runs := counted(t, n, o, func() {
			began <- struct{}{}
			<-end
		})
		m := goOrder("count", "a")
		h.keepsAll(m)
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
		<-began
		require.Equal(t, protocol.CodeOK, h.order(&protocol.CancelOrder{ChunkID: m.ChunkID}).Code)
		again := sameAttempts(m)
		require.Equal(t, protocol.CodeAccepted, h.order(again).Code)
		close(end)
		require.Equal(t, "a", string(h.all(again.ChunkID, 1)[0].Value))
		require.Equal(t, 1, runs("a"))
		h.keepsAll(again)
		w.idle()
	})
}

// TestASecondCancelCounts cancels both orders of an attempt, and has a head want the second one
// back, while the first still runs.
func TestASecondCancelCounts(t *testing.T) {
	t.Parallel()
	everyState(t, func(t *testing.T, n *memory, o Options) {
		h := newHead(t, n, headID)
		made, called, release := deaf(t, o)
		w := start(t, made, n)
		m := goOrder("deaf", "a", "b")
		h.keepsAll(m)
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
		<-called
		<-called
		require.Equal(t, protocol.CodeOK, h.order(&protocol.CancelOrder{ChunkID: m.ChunkID}).Code)
		again := sameAttempts(m)
		require.Equal(t, protocol.CodeAccepted, h.order(again).Code)
		require.Equal(t, protocol.CodeOK, h.takeBack(again, 1))
		require.Equal(t, protocol.CodeOK, h.order(&protocol.CancelOrder{ChunkID: again.ChunkID, Indexes: []int{0}}).Code)
		close(release)
		all := h.all(again.ChunkID, 2)
		require.Equal(t, "cancelled", all[0].Kind, "%+v", all[0])
		require.Contains(t, []protocol.Code{protocol.CodeUnavailable, protocol.CodeOK}, all[1].Code, "%+v", all[1])
		h.keepsAll(again)
		w.idle()
	})
}

// deaf is a worker with a function that fails once it is released, whatever it is told before,
// and has a result when it is called again.
func deaf(t *testing.T, o Options) (w *Worker, called chan string, release chan struct{}) {
	w, err := New(o)
	require.NoError(t, err)
	called, release = make(chan string, 100), make(chan struct{})
	require.NoError(t, w.Register("deaf", func(ctx context.Context, args []byte) ([]byte, error) {
		select {
		case <-release:
			return args, nil
		default:
		}
		called <- string(args)
		<-release
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}))
	return w, called, release
}

// TestASnoozedAttemptRunsAgain orders an attempt again whose function wanted to run later, while
// others of its first order go on: it is called again.
func TestASnoozedAttemptRunsAgain(t *testing.T) {
	t.Parallel()
	everyState(t, func(t *testing.T, n *memory, o Options) {
		h := newHead(t, n, headID)
		made, _, release := holding(t, o)
		var calls atomic.Int64
		require.NoError(t, made.Register("later", func(_ context.Context, args []byte) ([]byte, error) {
			if calls.Add(1) == 1 {
				return nil, workers.Snooze(time.Hour)
			}
			return args, nil
		}))
		w := start(t, made, n)
		held, m := goOrder("held", "a"), goOrder("later", "b")
		h.keepsAll(held)
		require.Equal(t, protocol.CodeAccepted, h.order(held).Code)
		h.keepsAll(m)
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
		w.awaitEnded(m)
		again := sameAttempts(m)
		require.Equal(t, protocol.CodeAccepted, h.order(again).Code)
		require.Equal(t, "b", string(h.all(again.ChunkID, 1)[0].Value))
		require.EqualValues(t, 2, calls.Load())
		close(release)
		h.keepsAll(again)
		w.idle()
	})
}

// TestACancelIsOfItsOrderAfterARestart has the worker die while an attempt that was ordered
// again still stops: it runs for the second order.
func TestACancelIsOfItsOrderAfterARestart(t *testing.T) {
	t.Parallel()
	n, h, o := withState(t)
	made, called, release := deaf(t, o)
	r := start(t, made, n)
	m := goOrder("deaf", "a")
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	<-called
	require.Equal(t, protocol.CodeOK, h.order(&protocol.CancelOrder{ChunkID: m.ChunkID}).Code)
	again := sameAttempts(m)
	require.Equal(t, protocol.CodeAccepted, h.order(again).Code)
	n.part(headID)
	require.NoError(t, r.node.db.Close())
	close(release) // what it returns does not reach the store
	require.Error(t, <-r.done)
	close(r.done)

	n, h = newNetwork(t, &o)
	made, _, release = deaf(t, o)
	close(release)
	r = start(t, made, n)
	require.Equal(t, "a", string(h.all(again.ChunkID, 1)[0].Value))
	r.idle()
}

// TestACancelOfWhatHasNotBegunIsOfItsOrder orders attempts again at the moment in which they are
// cancelled.
func TestACancelOfWhatHasNotBegunIsOfItsOrder(t *testing.T) {
	t.Parallel()
	everyState(t, func(t *testing.T, n *memory, o Options) {
		h := newHead(t, n, headID)
		o.Slots = 1
		made, called, release := holding(t, o)
		w := start(t, made, n)
		before := goOrder("held", "a")
		require.Equal(t, protocol.CodeAccepted, h.order(before).Code)
		<-called
		m := goOrder("double", make([]string, 1000)...)
		h.keepsAll(m)
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
		c := w.chunk(chunkName{headID, m.ChunkID})
		later := &order{WorkOrderBatch: sameAttempts(m), function: "go:double"}
		later.name = chunkName{headID, later.ChunkID}
		require.Nil(t, later.readItems())
		of := newChunk(w.Worker, later.name, later.WorkOrderBatch, len(later.items), later.items)
		of.release()
		subs := w.submissions(later, of)
		require.NoError(t, w.runner.checkAll(subs))
		cancelled := make(chan struct{})
		go func() {
			defer close(cancelled)
			w.runner.cancel(c, c.ids, "enough")
		}()
		for isCancelled := false; !isCancelled; {
			w.runner.mu.Lock()
			isCancelled = w.runner.items[c.ids[0]].cancelled != nil
			w.runner.mu.Unlock()
		}
		require.True(t, w.admit(of, later.size))
		w.runner.hold(of, subs)
		of.keep()
		w.runner.start(of)
		w.runChunk(of)
		<-cancelled
		close(release)
		for _, x := range h.all(later.ChunkID, len(subs)) {
			require.Equal(t, protocol.CodeOK, x.Code, "%+v", x)
		}
		h.keepsAll(later.WorkOrderBatch)
		w.idle()
	})
}

// TestAChunkIsKeptUntilTheNewOneHasItsEnds orders an attempt again that has ended: the journal has the old order until
// it has the end for the new one.
func TestAChunkIsKeptUntilTheNewOneHasItsEnds(t *testing.T) {
	t.Parallel()
	n, h, o := withState(t)
	w, runs := counted(t, n, o, func() {})
	m := goOrder("count", "a")
	h.keepsAll(m)
	require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	c := w.chunk(chunkName{headID, m.ChunkID})
	chunkIs := func(is func() bool) {
		require.Eventually(t, func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return is()
		}, testTime, time.Millisecond)
	}
	chunkIs(func() bool { return c.wait > 0 }) // its head has not taken the end
	w.journal.flushing.Lock()                  // no end is written
	again := sameAttempts(m)
	code := h.order(again).Code
	h.set(func() { // it takes the end from now on
		h.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack { return &protocol.Ack{Code: protocol.CodeOK} }
	})
	chunkIs(func() bool { return c.unsent == 0 && c.flights == 0 })
	err := w.tidy(t.Context())
	old := w.chunk(c.name)
	w.journal.flushing.Unlock()
	require.NoError(t, err)
	require.Equal(t, protocol.CodeAccepted, code)
	require.NotNil(t, old)
	require.Equal(t, "a", string(h.all(again.ChunkID, 1)[0].Value))
	require.Equal(t, 1, runs("a"))
	w.idle()
}
