package peerworker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/internal/bubble"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// runFor runs a worker for two heads.
func runFor(t testing.TB, n *memory, change func(*Options)) (*running, *fakeHead, *fakeHead) {
	const otherID = "12D3KooWOther"
	h, other := newHead(t, n, headID), newHead(t, n, otherID)
	o := options(n)
	o.Heads = append(o.Heads, "/ip4/127.0.0.1/tcp/2/p2p/"+otherID)
	change(&o)
	return run(t, o), h, other
}

// TestWhatItemsShareCountsForEach has a small order name an input and an environment that
// each of its items has for itself.
func TestWhatItemsShareCountsForEach(t *testing.T) {
	t.Parallel()
	_, h, o := withHead(t)
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

// TestAHeadThatAcknowledgesNothing has results pile up. The worker stops running before
// they take more than it may keep, and goes on once the head has some.
func TestAHeadThatAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	h.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack { return nil }
	o := options(n)
	o.MaxBytes = 256 << 10
	w, err := New(o)
	require.NoError(t, err)
	var ran atomic.Int64
	require.NoError(t, w.Register("much", func(context.Context, []byte) ([]byte, error) {
		ran.Add(1)
		return make([]byte, 4<<10), nil
	}))
	r := start(t, w, n)
	const items = 500 // more than one claim takes beyond what may be kept
	order := goOrder("much", make([]string, items)...)
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	require.Eventually(t, w.full.Load, testTime, time.Millisecond)
	require.Less(t, ran.Load(), int64(items))
	require.Equal(t, protocol.CodeUnavailable, h.order(goOrder("much", "")).Code)
	h.set(func() {
		h.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack { return &protocol.Ack{Code: protocol.CodeOK} }
	})
	n.part(headID)
	n.connect(headID) // so that what waits to be sent again waits no longer
	h.all(order.ChunkID, items)
	r.idle()
	require.False(t, w.full.Load())
}

// TestNoHeadWaitsForWhatAnotherSends has a head name a module and send nothing of it.
func TestNoHeadWaitsForWhatAnotherSends(t *testing.T) {
	t.Parallel()
	n := newMemory()
	_, hostile, honest := runFor(t, n, func(o *Options) { o.Modules = echoRunner{} })
	code := []byte("\x00asm of both")
	cid := cidOf(t, code)
	hostile.stuck = true
	honest.blobs[cid] = code
	require.Equal(t, protocol.CodeAccepted, hostile.order(moduleOrder(cid, []string{})).Code)
	require.Eventually(t, func() bool {
		hostile.mu.Lock()
		defer hostile.mu.Unlock()
		return hostile.fetches == 1
	}, testTime, time.Millisecond)
	order := moduleOrder(cid, []string{})
	require.Equal(t, protocol.CodeAccepted, honest.order(order).Code)
	require.True(t, honest.all(order.ChunkID, 1)[0].OK())
}

// TestModulesThatChunksUseAreBounded has a head order more modules than are kept.
func TestModulesThatChunksUseAreBounded(t *testing.T) {
	t.Parallel()
	_, h, o := withHead(t)
	o.Slots, o.ModuleCache = 100, 2000
	held := make(chan struct{})
	o.Modules = heldRunner{held}
	w := run(t, o)
	var orders []*protocol.WorkOrderBatch
	for i := range 20 {
		code := []byte(strings.Repeat(string(rune('a'+i)), 1000))
		cid := cidOf(t, code)
		h.set(func() { h.blobs[cid] = code })
		orders = append(orders, moduleOrder(cid, []string{}))
		require.Equal(t, protocol.CodeAccepted, h.order(orders[i]).Code)
	}
	require.Eventually(t, func() bool { return w.Stats().Modules >= 2 }, testTime, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, w.modules.awaitRoom(ctx, headID, cidOf(t, []byte("more"))), "bytes of other modules")
	close(held)
	for _, order := range orders {
		require.True(t, h.all(order.ChunkID, 1)[0].OK())
	}
	w.idle()
}

// heldRunner has modules wait.
type heldRunner struct{ held chan struct{} }

func (r heldRunner) RunModule(ctx context.Context, call workers.ModuleCall) (workers.ModuleOutcome, error) {
	select {
	case <-r.held:
	case <-ctx.Done():
	}
	return echoRunner{}.RunModule(ctx, call)
}

// TestAHeadInstallsForItselfAlone has another head install something else under an id that
// a head uses.
func TestAHeadInstallsForItselfAlone(t *testing.T) {
	t.Parallel()
	n := newMemory()
	n.b7s = true
	_, first, second := runFor(t, n, func(o *Options) { o.Modules, o.PrivateSources = echoRunner{}, true })
	honest, hostile := &b7sHead{first, n.handler}, &b7sHead{second, n.handler}
	order := b7sOrderOf(t, []string{"a"})
	install := func(h *b7sHead, code string) {
		m := &protocol.InstallFunction{
			CID: order.Template.FunctionID, ManifestURL: codeServer(t, []byte("\x00asm"+code)) + "/manifest.json",
		}
		data, err := protocol.Encode(m, protocol.DialectChunk)
		require.NoError(t, err)
		h.receive(data)
		require.Contains(t, string(h.next()), "installed")
	}
	install(honest, "good")
	require.Contains(t, hostile.answer(order)[0].Result.Stderr, "not found")
	install(hostile, "evil")
	require.Contains(t, honest.answer(order)[0].Result.Stdout, "good")
	require.Contains(t, hostile.answer(order)[0].Result.Stdout, "evil")
}

// TestOutputsThatNoReplyTakesAreNotKept has an order of b7s's put out more than its reply
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
	require.Eventually(t, func() bool {
		return w.Stats().Bytes < int64(keptOutput+discardBytes+4<<20)
	}, testTime, time.Millisecond)
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

// TestStrangeAnswersToHello has heads answer with numbers that make no sense.
func TestStrangeAnswersToHello(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		`{"type":"MsgHelloResponse","code":"200","heartbeat_ms":0,"dead_after_ms":0}`,
		`{"type":"MsgHelloResponse","code":"200","heartbeat_ms":9223372036854775807}`,
		`{"type":"MsgHelloResponse","code":"200","heartbeat_ms":-9223372036854775808,"dead_after_ms":-1}`,
		`{"type":"MsgHelloResponse","code":"200","heartbeat_ms":3000000000000,"dead_after_ms":1}`,
	} {
		m, err := protocol.Decode([]byte(answer))
		if err != nil {
			require.ErrorIs(t, err, protocol.ErrInvalid, answer)
			continue
		}
		n := newMemory()
		h := newHead(t, n, headID)
		h.hello = func(*protocol.Hello) *protocol.HelloResponse { return m.(*protocol.HelloResponse) }
		w := run(t, options(n))
		w.awaitHead()
		order := goOrder("double", "a")
		require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
		require.True(t, h.all(order.ChunkID, 1)[0].OK())
		w.idle()
	}
}

// TestAHeadThatIsSlowToTakeResults has all items of a chunk over, and results that the head
// does not take. The worker reports the chunk all the same, so that it is not taken for lost.
func TestAHeadThatIsSlowToTakeResults(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	h.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack {
		return &protocol.Ack{Code: protocol.CodeUnavailable}
	}
	w := run(t, options(n))
	order := goOrder("double", "a")
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	w.awaitEnded(order)
	reports := func() int {
		n := 0
		for _, p := range h.progress {
			if p.ChunkID == order.ChunkID && p.Done == 1 && p.Running == 0 {
				n++
			}
		}
		return n
	}
	h.await("reports", func() bool { return reports() > 2 })
	h.set(func() {
		h.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack { return &protocol.Ack{Code: protocol.CodeOK} }
	})
	h.all(order.ChunkID, 1)
	w.idle()
}

// TestAnIdleWorkerSaysHello has a head forget a worker that has nothing to tell it.
func TestAnIdleWorkerSaysHello(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		n := newMemory()
		h := newHead(t, n, headID)
		w := run(t, options(n))
		require.NoError(t, clock.Sleep(t.Context(), clock.Real{}, time.Second))
		require.Len(t, h.hellos, 1)
		require.NoError(t, clock.Sleep(t.Context(), clock.Real{}, 2*idleHello))
		synctest.Wait()
		require.GreaterOrEqual(t, len(h.hellos), 2)
		require.LessOrEqual(t, len(h.hellos), 3)
		require.EqualValues(t, 1, w.Stats().Hellos, "it was taken once")
		h.set(func() { h.hello = func(*protocol.Hello) *protocol.HelloResponse { return nil } })
		require.NoError(t, clock.Sleep(t.Context(), clock.Real{}, 2*idleHello))
		require.Zero(t, w.Stats().Heads)
		require.NoError(t, w.end())
	})
}

// TestHeadsNameItemsForThemselves has two heads order attempts of the same name, and a
// stranger cancel what it was not asked for.
func TestHeadsNameItemsForThemselves(t *testing.T) {
	t.Parallel()
	n := newMemory()
	stranger := newHead(t, n, "12D3KooWStranger")
	w, first, second := runFor(t, n, func(*Options) {})
	one, other := goOrder("double", "a"), goOrder("double", "b")
	other.ChunkID, other.Items[0].ID = one.ChunkID, one.Items[0].ID
	require.Equal(t, protocol.CodeAccepted, first.order(one).Code)
	require.Equal(t, protocol.CodeAccepted, second.order(other).Code)
	require.Equal(t, protocol.CodeNotPermitted, stranger.order(&protocol.CancelOrder{ChunkID: one.ChunkID}).Code)
	require.Equal(t, "aa", string(first.all(one.ChunkID, 1)[0].Value))
	require.Equal(t, "bb", string(second.all(one.ChunkID, 1)[0].Value))
	w.idle()
}

// TestTheLastMessageOfAChunkComesLast has a head hold the first message of a chunk up.
func TestTheLastMessageOfAChunkComesLast(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		n := newMemory()
		h := newHead(t, n, headID)
		held := make(chan struct{})
		var came, last atomic.Int64
		h.results = func(m *protocol.WorkOrderBatchResponse) *protocol.Ack {
			if !m.Partial {
				last.Add(1)
			}
			if came.Add(1) == 1 {
				<-held
			}
			return &protocol.Ack{Code: protocol.CodeOK}
		}
		const items = maxOutcomes + 500
		o := options(n)
		o.MaxChunk = items
		w := run(t, o)
		order := goOrder("double", make([]string, items)...)
		require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
		require.NoError(t, clock.Sleep(t.Context(), clock.Real{}, 10*time.Second))
		synctest.Wait()
		early := last.Load()
		close(held)
		h.all(order.ChunkID, items)
		require.Zero(t, early)
		require.EqualValues(t, 1, last.Load())
		require.NoError(t, w.end())
	})
}

// TestAConnectionThatChangesDuringHello has the head be met anew while it answers.
func TestAConnectionThatChangesDuringHello(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		n := newMemory()
		h := newHead(t, n, headID)
		var once sync.Once
		h.hello = func(*protocol.Hello) *protocol.HelloResponse {
			once.Do(func() {
				n.part(headID)
				n.connect(headID)
			})
			return &protocol.HelloResponse{Code: protocol.CodeOK}
		}
		w := run(t, options(n))
		require.NoError(t, clock.Sleep(t.Context(), clock.Real{}, time.Second))
		synctest.Wait()
		require.Len(t, h.hellos, 2)
		require.NoError(t, w.end())
	})
}
