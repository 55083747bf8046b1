package peerworker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/workers"
)

// echoRunner runs modules: each returns its content, its method, its arguments, its
// environment and its input.
type echoRunner struct{}

func (echoRunner) RunModule(ctx context.Context, call workers.ModuleCall) (workers.ModuleOutcome, error) {
	code, err := call.Load(ctx)
	if err != nil {
		return workers.ModuleOutcome{}, err
	}
	out := fmt.Sprintf("%s %s %q %v %s %d", code[:min(len(code), 10)], call.Method, call.Argv, call.Env, call.Stdin,
		call.MemoryLimit)
	if len(call.Argv) > 0 && call.Argv[0] == "exit" {
		return workers.ModuleOutcome{Kind: "exit", Message: "exit code 3", ExitCode: 3, Stdout: []byte(out),
			Stderr: []byte("no")}, nil
	}
	if len(call.Argv) > 0 && call.Argv[0] == "exit -1" {
		return workers.ModuleOutcome{Kind: "exit", Message: "exit code 4294967295", ExitCode: math.MaxUint32}, nil
	}
	return workers.ModuleOutcome{Stdout: []byte(out), Stderr: []byte("fine")}, nil
}

// moduleOrder is an order of a module, with an item for each list of arguments.
func moduleOrder(cid string, arguments ...[]string) *protocol.WorkOrderBatch {
	m := goOrder("", make([]string, len(arguments))...)
	m.Template = protocol.Template{FunctionID: cid}
	m.Module, m.Arguments = cid, arguments
	for i := range m.Items {
		m.Items[i].Codec, m.Items[i].Args = "", nil
	}
	return m
}

func cidOf(t testing.TB, code []byte) string {
	cid, err := modules.CID(code)
	require.NoError(t, err)
	return cid
}

func TestModulesAreFetchedOnce(t *testing.T) {
	t.Parallel()
	_, h, o := withHead(t)
	o.Modules = echoRunner{}
	w := run(t, o)
	code := []byte("\x00asm some module")
	cid := cidOf(t, code)
	h.set(func() { h.blobs[cid] = code })
	first := moduleOrder(cid, []string{"a", "b"}, []string{"exit"}, []string{"exit -1"})
	first.Template.Config = protocol.Config{
		Environment: []batch.EnvVar{{Name: "X", Value: "1"}}, Stdin: "in", Runtime: &protocol.Runtime{Memory: 1 << 20},
	}
	second := moduleOrder(cid, []string{})
	second.Template.Method = "run"
	for _, m := range []*protocol.WorkOrderBatch{first, second} {
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	}
	all := h.all(first.ChunkID, 3)
	require.Equal(t, -1, all[2].ExitCode)
	require.Equal(t, fmt.Sprintf("%s  %q map[X:1] in %d", code[:10], []string{"a", "b"}, 1<<20), string(all[0].Value))
	require.Equal(t, "fine", string(all[0].Stderr))
	require.Equal(t, 3, all[1].ExitCode)
	require.Equal(t, "exit", all[1].Kind)
	require.Equal(t, "no", string(all[1].Stderr))
	require.Contains(t, string(all[1].Stdout), "exit")
	require.Contains(t, string(h.all(second.ChunkID, 1)[0].Value), " run [] map[]")
	w.idle()
	require.Equal(t, 1, h.fetches)
	require.EqualValues(t, len(code), w.Stats().ModuleBytes)
}

func TestAnItemWhoseModuleCantBeFetchedIsGivenBack(t *testing.T) {
	t.Parallel()
	_, h, o := withHead(t)
	o.Modules = echoRunner{}
	w := run(t, o)
	order := moduleOrder(cidOf(t, []byte("nowhere")), []string{"a"})
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	got := h.all(order.ChunkID, 1)[0]
	require.Equal(t, protocol.CodeUnavailable, got.Code)
	require.Contains(t, got.Message, "no such blob")
	w.idle()
}

func TestModulesThatWereNotUsedForLongAreRemoved(t *testing.T) {
	t.Parallel()
	_, h, o := withHead(t)
	o.Modules, o.ModuleCache = echoRunner{}, 2500
	w := run(t, o)
	var cids []string
	for i := range 3 {
		code := []byte(strings.Repeat(fmt.Sprint(i), 1000))
		cid := cidOf(t, code)
		h.set(func() { h.blobs[cid] = code })
		cids = append(cids, cid)
		order := moduleOrder(cid, []string{})
		require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
		h.all(order.ChunkID, 1)
		w.idle()
	}
	stored, err := modules.Of(w.node.cluster).List(t.Context())
	require.NoError(t, err)
	require.Len(t, stored, 2)
	for _, s := range stored {
		require.NotEqual(t, cids[0], s.CID)
	}
}

func TestOrdersThatAreNotTaken(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	stranger := newHead(t, n, "12D3KooWStranger")
	o := options(n)
	o.MaxChunk, o.MaxBytes = 3, 10_000
	w := run(t, o)
	twice := goOrder("double", "a", "b")
	twice.Items[1].ID = twice.Items[0].ID
	badID := goOrder("double", "a")
	badID.Items[0].ID = "0:1"
	noItems := goOrder("double", "a")
	noItems.Items = nil
	for _, c := range []struct {
		what  string
		order *protocol.WorkOrderBatch
		code  protocol.Code
		says  string
	}{
		{"unknown function", goOrder("nothing", "a"), protocol.CodeNotFound, "go:nothing"},
		{"module without a runner", moduleOrder(cidOf(t, []byte("x")), []string{}), protocol.CodeNotFound, "no modules"},
		{"many items", goOrder("double", "a", "b", "c", "d"), protocol.CodeInvalid, "at most 3"},
		{"the same attempt twice", twice, protocol.CodeInvalid, "items[1]"},
		{"an id of no future", badID, protocol.CodeInvalid, "items[0]"},
		{"no items", noItems, protocol.CodeInvalid, "0 items"},
		{"many bytes", goOrder("double", strings.Repeat("x", 10_000)), protocol.CodeUnavailable, "as much as it takes"},
	} {
		answer := h.order(c.order)
		require.Equal(t, c.code, answer.Code, c.what)
		require.Contains(t, answer.Message, c.says, c.what)
	}
	require.Equal(t, protocol.CodeNotPermitted, stranger.order(goOrder("double", "a")).Code)
	require.Equal(t, protocol.CodeInvalid, h.raw([]byte(`{"type":"MsgWorkOrderBatch"`)).Code)
	require.Equal(t, protocol.CodeInvalid, h.raw([]byte(`{"type":"MsgNothing"}`)).Code)
	require.Equal(t, protocol.CodeNotSupported, h.order(&protocol.Goodbye{}).Code)
	require.Equal(t, protocol.CodeNotFound, h.order(&protocol.CancelOrder{ChunkID: uuid.NewString()}).Code)
	require.Zero(t, w.Stats().ChunksTaken)
	require.EqualValues(t, 2, w.Stats().Garbage)
	w.idle()
}

func TestABusyWorkerTakesNoMore(t *testing.T) {
	t.Parallel()
	_, h, o := withHead(t)
	o.MaxChunks, o.MaxItems = 2, 3
	w := run(t, o)
	w.awaitHead()
	require.Equal(t, 3, h.hellos[0].MaxChunk, "a head does not send what never has room")
	require.Equal(t, protocol.CodeInvalid, h.order(goOrder("double", "a", "b", "c", "d")).Code)
	first := goOrder("wait", "a", "b")
	require.Equal(t, protocol.CodeAccepted, h.order(first).Code)
	require.Equal(t, protocol.CodeUnavailable, h.order(goOrder("double", "a", "b")).Code)
	second := goOrder("wait", "a")
	require.Equal(t, protocol.CodeAccepted, h.order(second).Code)
	require.Equal(t, protocol.CodeUnavailable, h.order(goOrder("double", "a")).Code)
	for m, none := range map[*protocol.WorkOrderBatch]string{first: "", second: `"indexes":[],`} {
		all := fmt.Sprintf(`{"type":"MsgCancelOrder",%s"chunk_id":%q,"reason":"enough"}`, none, m.ChunkID)
		require.Equal(t, protocol.CodeOK, h.raw([]byte(all)).Code)
		for _, o := range h.all(m.ChunkID, len(m.Items)) {
			require.Equal(t, "cancelled", o.Kind)
			require.Equal(t, "enough", o.Message)
		}
	}
	w.idle()
	require.Equal(t, protocol.CodeAccepted, h.order(goOrder("double", "a", "b")).Code)
}

func TestSomeItemsAreCancelled(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	w := run(t, options(n))
	order := goOrder("wait", "a", "b", "c", "d", "e", "f")
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	h.await("four to run", func() bool {
		return len(h.progress) > 0 && h.progress[len(h.progress)-1].Running == 4
	})
	// One that is not there changes nothing.
	some := &protocol.CancelOrder{ChunkID: order.ChunkID, Indexes: []int{1, 4, 99}}
	require.Equal(t, protocol.CodeOK, h.order(some).Code)
	h.await("two", func() bool { return len(h.outcomes[order.ChunkID]) == 2 })
	h.mu.Lock()
	require.Contains(t, h.outcomes[order.ChunkID], 1)
	require.Contains(t, h.outcomes[order.ChunkID], 4)
	require.False(t, h.last[order.ChunkID])
	h.mu.Unlock()
	require.Equal(t, protocol.CodeOK, h.order(&protocol.CancelOrder{ChunkID: order.ChunkID}).Code)
	h.all(order.ChunkID, 6)
	w.idle()
}

func TestTheSameChunkAndTheSameAttemptRunOnce(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	w, err := New(options(n))
	require.NoError(t, err)
	var mu sync.Mutex
	calls := map[string]int{}
	release := make(chan struct{})
	require.NoError(t, w.Register("count", func(_ context.Context, args []byte) ([]byte, error) {
		mu.Lock()
		calls[string(args)]++
		mu.Unlock()
		<-release
		return args, nil
	}))
	r := start(t, w, n)
	order := goOrder("count", "a", "b")
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	require.Equal(t, protocol.CodeConflict, h.order(order).Code)
	// The head gives an item again, with others, in another chunk.
	again := goOrder("count", "c", "a")
	again.Items[1] = order.Items[0]
	require.Equal(t, protocol.CodeAccepted, h.order(again).Code)
	close(release)
	require.Equal(t, "a", string(h.all(again.ChunkID, 2)[1].Value))
	h.await("the rest", func() bool { return len(h.outcomes[order.ChunkID]) == 1 && h.last[order.ChunkID] })
	r.idle()
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1}, calls)
}

func TestAHeadThatDoesNotAcknowledgeGetsResultsAgain(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	refusals := 0
	h.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack {
		switch refusals++; refusals {
		case 1:
			return &protocol.Ack{Code: protocol.CodeUnavailable}
		case 2:
			return nil // the connection breaks
		case 3:
			return &protocol.Ack{Code: protocol.CodeError}
		}
		return &protocol.Ack{Code: protocol.CodeOK}
	}
	w := run(t, options(n))
	order := goOrder("double", "a")
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	require.Equal(t, "aa", string(h.all(order.ChunkID, 1)[0].Value))
	w.idle()
	require.EqualValues(t, 3, w.Stats().Resent)
}

func TestAHeadThatDoesNotWantAChunkIsRidOfIt(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	h.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack { return &protocol.Ack{Code: protocol.CodeGone} }
	w := run(t, options(n))
	order := goOrder("double", "a", "b")
	order.Items = append(order.Items, goOrder("wait", "c").Items...)
	order.Arguments = append(order.Arguments, []string{})
	waits := goOrder("wait", "x")
	require.Equal(t, protocol.CodeAccepted, h.order(waits).Code)
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	require.Equal(t, protocol.CodeOK, h.order(&protocol.CancelOrder{ChunkID: waits.ChunkID}).Code)
	w.idle()
	require.Zero(t, w.Stats().Delivered)
}

func TestAHeadThatWasAwayGetsTheResults(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	w, err := New(options(n))
	require.NoError(t, err)
	release := make(chan struct{})
	require.NoError(t, w.Register("held", func(_ context.Context, args []byte) ([]byte, error) {
		<-release
		return args, nil
	}))
	r := start(t, w, n)
	order, unknown := goOrder("held", "a"), goOrder("held", "b")
	for _, m := range []*protocol.WorkOrderBatch{order, unknown} {
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
	}
	h.await("a hello", func() bool { return len(h.hellos) == 1 })
	n.part(headID)
	close(release)
	for _, m := range []*protocol.WorkOrderBatch{order, unknown} {
		r.awaitEnded(m)
	}
	h.set(func() {
		h.hello = func(*protocol.Hello) *protocol.HelloResponse {
			return &protocol.HelloResponse{
				Code: protocol.CodeOK, Wanted: []string{order.ChunkID}, Unknown: []string{unknown.ChunkID},
			}
		}
	})
	n.connect(headID)
	require.Equal(t, "a", string(h.all(order.ChunkID, 1)[0].Value))
	r.idle()
	h.mu.Lock()
	defer h.mu.Unlock()
	require.Empty(t, h.outcomes[unknown.ChunkID])
	require.Len(t, h.hellos[1].Kept, 2)
	require.Equal(t, h.hellos[0].Incarnation, h.hellos[1].Incarnation)
}

func TestAHeadThatForgotTheWorkerIsGreetedAgain(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	h.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack {
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.hellos) == 1 {
			return &protocol.Ack{Code: protocol.CodeNotAuthorized}
		}
		return &protocol.Ack{Code: protocol.CodeOK}
	}
	w := run(t, options(n))
	h.await("a hello", func() bool { return len(h.hellos) == 1 })
	order := goOrder("double", "a")
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	h.all(order.ChunkID, 1)
	w.idle()
	require.EqualValues(t, 2, w.Stats().Hellos)
}

func TestAHelloThatIsRefusedIsSaidAgain(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	refused := errors.New("")
	h.hello = func(*protocol.Hello) *protocol.HelloResponse {
		if refused != nil {
			refused = nil
			return &protocol.HelloResponse{Code: protocol.CodeUnavailable, Message: "full"}
		}
		return &protocol.HelloResponse{Code: protocol.CodeOK, HeartbeatMS: 1}
	}
	o := options(n)
	o.Name, o.Version, o.Labels, o.Modules = "edge", "1.2.3", map[string]string{"zone": "a"}, echoRunner{}
	w := run(t, o)
	w.awaitHead()
	require.Len(t, h.hellos, 2)
	m := h.hellos[1]
	require.Equal(t, "edge", m.Name)
	require.Equal(t, "1.2.3", m.Version)
	require.Equal(t, map[string]string{"zone": "a"}, m.Labels)
	require.Equal(t, 4, m.Capacity.Slots)
	require.Positive(t, m.Capacity.CPUMillis)
	require.Positive(t, m.Capacity.RAMBytes)
	require.Subset(t, m.Functions, []string{"go:double", "wasm:*"})
	require.Equal(t, defaultMaxChunk, m.MaxChunk)
	require.Len(t, m.Incarnation, 16)
	require.Equal(t, 1, w.Stats().Heads)
}

func TestAHeadThatForgotAChunkIsSentItsItems(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	proved := make(chan []protocol.OrderItem, 2)
	h.results = func(m *protocol.WorkOrderBatchResponse) *protocol.Ack {
		if len(m.Items) == 0 {
			return &protocol.Ack{Code: protocol.CodeConflict}
		}
		proved <- m.Items
		return &protocol.Ack{Code: protocol.CodeOK}
	}
	w := run(t, options(n))
	order := goOrder("double", "a", "b")
	order.Items[1].Attempt = 7
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	var want []protocol.OrderItem
	for _, it := range order.Items {
		want = append(want, protocol.OrderItem{ID: it.ID, Attempt: it.Attempt})
	}
	require.Equal(t, want, <-proved)
	w.idle()
}

func TestPeersThatHaveGoneAreForgotten(t *testing.T) {
	t.Parallel()
	n := newMemory()
	newHead(t, n, headID)
	newHead(t, n, "12D3KooWStranger")
	o := options(n)
	o.AllowAnyHead = true
	w := run(t, o)
	for i := range 100 {
		id := fmt.Sprint("12D3KooWPeer", i)
		newHead(t, n, id)
		n.connect(id)
		n.part(id)
	}
	stranger := n.heads["12D3KooWStranger"]
	order := goOrder("double", "a")
	require.Equal(t, protocol.CodeAccepted, stranger.order(order).Code)
	stranger.all(order.ChunkID, 1)
	w.idle()
	n.part("12D3KooWStranger")
	n.part(headID)
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Len(t, w.links, 1, "the head that was named stays")
}

func TestMessagesAreCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	for ahead := range 3 {
		text := cut(strings.Repeat("x", ahead) + strings.Repeat("日", 1000))
		require.True(t, utf8.ValidString(text), "%q", text)
		require.LessOrEqual(t, len(text), 1000)
	}
}
