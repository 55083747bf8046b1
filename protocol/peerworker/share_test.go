package peerworker

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modules"
	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/protocol"
)

// sharing is a worker of some heads that only counts what they have.
func sharing(t testing.TB, most use, heads ...string) *Worker {
	o := Options{
		Network: newMemory(), AllowAnyHead: true, MaxChunks: most.chunks, MaxItems: most.items, MaxBytes: most.bytes,
	}
	for _, id := range heads {
		o.Heads = append(o.Heads, "/ip4/127.0.0.1/tcp/1/p2p/"+id)
	}
	w, err := New(o)
	require.NoError(t, err)
	return w
}

// gives has a head give an order, and reports whether it is taken.
func (w *Worker) gives(head string, order use) bool {
	if !w.hasRoom(head, order.items, order.bytes) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.useOf(head).add(order)
	return true
}

// TestSharesOfBoundsWithoutEnd has a head have all chunks of a worker whose other bounds are as good as none: another
// one still gets its share at once.
func TestSharesOfBoundsWithoutEnd(t *testing.T) {
	t.Parallel()
	w := sharing(t, use{chunks: 4, items: math.MaxInt, bytes: math.MaxInt64}, "x", "y")
	for range 4 {
		require.True(t, w.gives("x", use{chunks: 1, items: 1, bytes: 1}))
	}
	require.True(t, w.gives("y", use{chunks: 1, items: 1, bytes: 1}))
}

// TestShares has heads give orders of any sizes and end them, strangers among them. One that is
// alone gets everything, a named one is never refused within what it would have beside all others,
// and all have at most twice the bounds.
func TestShares(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		most := use{chunks: 24, items: 600, bytes: 6000}
		named := []string{"a", "b", "c"}[:rapid.IntRange(0, 3).Draw(rt, "named")]
		w := sharing(t, most, named...)
		moved := clock.NewVirtual(time.Unix(0, 0))
		w.options.clock = moved
		heads := append([]string{"x", "y", "z", "u", "v"}, named...)
		orders := map[string][]use{}
		for range rapid.IntRange(1, 120).Draw(rt, "steps") {
			head := rapid.SampledFrom(heads).Draw(rt, "head")
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0:
				if all := orders[head]; len(all) > 0 {
					o := all[0]
					orders[head] = all[1:]
					w.mu.Lock()
					w.useOf(head).add(use{chunks: -o.chunks, items: -o.items, bytes: -o.bytes})
					w.forgetUse(head, moved.Now())
					w.mu.Unlock()
				}
			case 1:
				moved.Advance(time.Duration(rapid.IntRange(1, 40).Draw(rt, "seconds")) * time.Second)
			default:
				o := use{chunks: 1, items: rapid.IntRange(1, 50).Draw(rt, "items"),
					bytes: rapid.Int64Range(0, 500).Draw(rt, "bytes")}
				requireShare(rt, w, head, o, len(orders) == 0 || alone(orders, head))
				if w.gives(head, o) {
					orders[head] = append(orders[head], o)
				}
			}
		}
	})
}

func alone(orders map[string][]use, head string) bool {
	for other, all := range orders {
		if other != head && len(all) > 0 {
			return false
		}
	}
	return true
}

// requireShare requires that an order is taken, or refused, as shares say.
func requireShare(t *rapid.T, w *Worker, head string, o use, isAlone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, most := w.options.clock.Now(), w.most()
	after, all, asks := use{}, use{}, false
	for name, u := range w.uses {
		all.add(*u)
		asks = asks || name != head && now.Sub(u.asked) < askedFor
	}
	if u := w.uses[head]; u != nil {
		after = *u
	}
	after.add(o)
	all.add(o)
	twice := use{chunks: 2 * most.chunks, items: 2 * most.items, bytes: 2 * most.bytes}
	may := w.mayTake(head, o, now)
	switch {
	case !all.within(twice, 1):
		require.False(t, may, "beyond twice the bounds")
	case isAlone && !asks:
		require.Equal(t, all.within(most, 1), may, "alone: %+v", after)
	case w.isNamed(head) && after.within(most, len(w.heads)+1):
		require.True(t, may, "%s within its share: %+v of %+v", head, after, all)
	}
}

// TestStrangersAreOneHead has any number of heads that the worker does not name take all that
// they can, before the one that it names comes.
func TestStrangersAreOneHead(t *testing.T) {
	t.Parallel()
	w := sharing(t, use{chunks: 100, items: 1000, bytes: 1 << 20}, headID)
	taken := 0
	for i := range 5000 {
		if w.gives(fmt.Sprint("stranger ", i), use{chunks: 1, items: 1, bytes: 10}) {
			taken++
		}
	}
	require.Equal(t, 100, taken)
	require.LessOrEqual(t, len(w.uses), maxUses+101)
	got := 0
	for w.gives(headID, use{chunks: 1, items: 1, bytes: 10}) {
		got++
	}
	require.Equal(t, 50, got, "half of all, beside whatever strangers have")
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Equal(t, []HeadUse{
		{Head: headID, Chunks: 50, Items: 50, Bytes: 500, Refused: 1},
		{Head: OtherHeads, Chunks: 100, Items: 100, Bytes: 1000, Refused: 4900},
	}, w.headUses())
}

// TestAHeadThatHoardsKeepsNoOtherOut has a head take all chunks, and acknowledge nothing. Another
// one gets its share, and after that what is left goes to it first.
func TestAHeadThatHoardsKeepsNoOtherOut(t *testing.T) {
	t.Parallel()
	everyState(t, func(t *testing.T, n *memory, o Options) {
		end := make(chan struct{})
		hoarder, other := newHead(t, n, headID), newHead(t, n, "12D3KooWOther")
		o.Heads = append(o.Heads, "/ip4/127.0.0.1/tcp/2/p2p/12D3KooWOther")
		o.MaxChunks = 8
		w, _ := counted(t, n, o, func() { <-end })
		var orders []*protocol.WorkOrderBatch
		fill := func(h *fakeHead, most int) (taken int) {
			for range most {
				m := goOrder("count", "a")
				if h.order(m).Code != protocol.CodeAccepted {
					return taken
				}
				orders = append(orders, m)
				taken++
			}
			return taken
		}
		require.Equal(t, 8, fill(hoarder, 20), "all, while it is alone")
		require.Equal(t, 4, fill(other, 20), "its share")
		uses := w.Stats().ByHead
		require.Len(t, uses, 2)
		require.Equal(t, []int{8, 4}, []int{uses[0].Chunks, uses[1].Chunks})
		require.Equal(t, []int64{1, 1}, []int64{uses[0].Refused, uses[1].Refused})
		require.Equal(t, map[string]float64{headID: 8, "12D3KooWOther": 4}, chunksByHead(t, w.Worker))
		close(end)
		for i, m := range orders {
			h := hoarder
			if i >= 8 {
				h = other
			}
			h.all(m.ChunkID, 1)
		}
		w.idle()
	})
}

// chunksByHead is what the metrics of a worker say.
func chunksByHead(t *testing.T, w *Worker) map[string]float64 {
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(NewCollector(w)))
	families, err := registry.Gather()
	require.NoError(t, err)
	by := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "futura_peerworker_head_chunks" {
			continue
		}
		for _, m := range f.GetMetric() {
			by[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return by
}

// TestResultsThatAHeadDoesNotTakeStopNoOther has one head acknowledge nothing, until nothing of it
// begins any more. What another one orders runs.
func TestResultsThatAHeadDoesNotTakeStopNoOther(t *testing.T) {
	t.Parallel()
	everyState(t, func(t *testing.T, n *memory, o Options) {
		deaf, other := newHead(t, n, headID), newHead(t, n, "12D3KooWOther")
		deaf.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack { return nil }
		o.Heads = append(o.Heads, "/ip4/127.0.0.1/tcp/2/p2p/12D3KooWOther")
		o.MaxBytes = 100 << 10
		made, err := New(o)
		require.NoError(t, err)
		require.NoError(t, made.Register("much", func(context.Context, []byte) ([]byte, error) {
			return make([]byte, 1<<10), nil
		}))
		w := start(t, made, n)
		m := goOrder("much", make([]string, 120)...)
		require.Equal(t, protocol.CodeAccepted, deaf.order(m).Code)
		require.Eventually(t, func() bool { return w.Stats().Bytes > o.MaxBytes }, testTime, time.Millisecond)
		more := goOrder("much", make([]string, 10)...)
		require.Equal(t, protocol.CodeAccepted, other.order(more).Code)
		for _, x := range other.all(more.ChunkID, 10) {
			require.True(t, x.OK())
		}
		deaf.set(func() {
			deaf.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack { return &protocol.Ack{Code: protocol.CodeOK} }
		})
		deaf.all(m.ChunkID, 120)
		w.idle()
	})
}

// TestHeadsShareSlots has a head order many items before another one orders a few: these don't
// wait for all of those.
func TestHeadsShareSlots(t *testing.T) {
	t.Parallel()
	n := newMemory()
	first, second := newHead(t, n, headID), newHead(t, n, "12D3KooWOther")
	o := options(n)
	o.Heads = append(o.Heads, "/ip4/127.0.0.1/tcp/2/p2p/12D3KooWOther")
	o.Slots = 1
	made, err := New(o)
	require.NoError(t, err)
	var mu sync.Mutex
	var calls []string
	began, end := make(chan struct{}, 1000), make(chan struct{})
	require.NoError(t, made.Register("note", func(_ context.Context, args []byte) ([]byte, error) {
		mu.Lock()
		calls = append(calls, string(args))
		mu.Unlock()
		began <- struct{}{}
		<-end
		return nil, nil
	}))
	w := start(t, made, n)
	many := goOrder("note", strings.Split(strings.Repeat("a", 300), "")...)
	many.Priority = 9 // it is the head's own
	require.Equal(t, protocol.CodeAccepted, first.order(many).Code)
	<-began
	few := goOrder("note", "b", "b", "b")
	require.Equal(t, protocol.CodeAccepted, second.order(few).Code)
	close(end)
	second.all(few.ChunkID, 3)
	first.all(many.ChunkID, 300)
	mu.Lock()
	defer mu.Unlock()
	last := strings.LastIndex(strings.Join(calls, ""), "b")
	require.Less(t, last, 40, "what the worker had claimed ahead runs first: %v", calls)
	w.idle()
}

// TestModulesOfAHeadThatHasMostGoFirst has a head fill the cache after another one has used its
// module: that one's stays.
func TestModulesOfAHeadThatHasMostGoFirst(t *testing.T) {
	t.Parallel()
	n := newMemory()
	const size = 1000
	w, hoarder, other := runFor(t, n, func(o *Options) { o.Modules, o.ModuleCache = echoRunner{}, 4*size })
	use := func(h *fakeHead, content byte) string {
		code := append([]byte("\x00asm"), bytes.Repeat([]byte{content}, size-4)...)
		cid := cidOf(t, code)
		h.set(func() { h.blobs[cid] = code })
		m := moduleOrder(cid, []string{})
		require.Equal(t, protocol.CodeAccepted, h.order(m).Code)
		require.True(t, h.all(m.ChunkID, 1)[0].OK())
		w.idle()
		return cid
	}
	kept := use(other, 'o')
	for i := range 12 {
		use(hoarder, byte(i))
	}
	use(other, 'o')
	require.Equal(t, 1, other.fetches, "its module was not removed")
	stored, err := modules.Of(w.node.cluster).List(t.Context())
	require.NoError(t, err)
	found := false
	for _, m := range stored {
		found = found || m.CID == kept
	}
	require.True(t, found)
	require.LessOrEqual(t, len(stored), 4)
}

// TestOrdersThatWaitDoNotStopTheirHead has a head order nearly all that the worker takes, and another one as much as
// its share, which runs on. What the first one has are arguments alone: they become fewer once they run.
func TestOrdersThatWaitDoNotStopTheirHead(t *testing.T) {
	t.Parallel()
	everyState(t, func(t *testing.T, n *memory, o Options) {
		first, second := newHead(t, n, headID), newHead(t, n, "12D3KooWOther")
		o.Heads = append(o.Heads, "/ip4/127.0.0.1/tcp/2/p2p/12D3KooWOther")
		o.Slots, o.MaxBytes = 2, 100<<10
		made, err := New(o)
		require.NoError(t, err)
		begin, end := make(chan struct{}), make(chan struct{})
		require.NoError(t, made.Register("first", func(context.Context, []byte) ([]byte, error) {
			<-begin
			return nil, nil
		}))
		require.NoError(t, made.Register("second", func(context.Context, []byte) ([]byte, error) {
			<-end
			return nil, nil
		}))
		w := start(t, made, n)
		many := goOrder("first", slices.Repeat([]string{strings.Repeat("x", 100)}, 300)...)
		require.Equal(t, protocol.CodeAccepted, first.order(many).Code)
		one := goOrder("second", strings.Repeat("x", 40<<10))
		require.Equal(t, protocol.CodeAccepted, second.order(one).Code)
		require.Greater(t, w.Stats().Bytes, o.MaxBytes)
		close(begin)
		first.all(many.ChunkID, 300)
		close(end)
		second.all(one.ChunkID, 1)
		w.idle()
	})
}

// TestOrdersAtOnceShareTheRoom has two orders come at once, for one of which there is room.
func TestOrdersAtOnceShareTheRoom(t *testing.T) {
	t.Parallel()
	w := sharing(t, use{chunks: 1, items: 10, bytes: 1000}, headID)
	orders := []*protocol.WorkOrderBatch{goOrder("f", "a"), goOrder("f", "b")}
	for range orders {
		require.True(t, w.hasRoom(headID, 1, 1))
	}
	admit := func(m *protocol.WorkOrderBatch, kept bool) bool {
		c := newChunk(w, chunkName{headID, m.ChunkID}, m, 1, []item{{layout.KeyedID(m.ChunkID, ""), 1}})
		c.kept = kept
		return w.admit(c, 1)
	}
	require.True(t, admit(orders[0], false))
	require.False(t, admit(orders[1], false))
	require.Equal(t, use{chunks: 1, items: 1, bytes: 1, unsent: 1}, w.has)
	require.True(t, admit(orders[1], true), "it was here before a restart")
}
