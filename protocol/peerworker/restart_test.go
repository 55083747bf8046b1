package peerworker

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
)

// crash ends a worker as the death of its process would: nothing more reaches its
// store, and no head.
func (r *running) crash() {
	r.t.Helper()
	r.net.part(headID)
	require.NoError(r.t, r.node.db.Close())
	require.Error(r.t, <-r.done)
	close(r.done)
}

// holding is a worker with a function that waits until it is released, and tells of
// its calls.
func holding(t testing.TB, o Options) (w *Worker, called chan string, release chan struct{}) {
	w, err := New(o)
	require.NoError(t, err)
	called, release = make(chan string, 100), make(chan struct{})
	require.NoError(t, w.Register("held", func(ctx context.Context, args []byte) ([]byte, error) {
		called <- string(args)
		select {
		case <-release:
			return args, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}))
	require.NoError(t, w.Register("double", functions["double"]))
	return w, called, release
}

func TestAWorkerWithAStateRemembersAcrossItsDeath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := newMemory()
	h := newHead(t, n, headID)
	h.results = func(*protocol.WorkOrderBatchResponse) *protocol.Ack {
		return &protocol.Ack{Code: protocol.CodeUnavailable} // it acknowledges nothing
	}
	o := options(n)
	o.State, o.Slots = dir, 1
	w, called, _ := holding(t, o)
	r := start(t, w, n)
	done, begun := goOrder("double", "a", "b"), goOrder("held", "c", "d")
	require.Equal(t, protocol.CodeAccepted, h.order(done).Code)
	r.awaitEnded(done)
	require.Equal(t, protocol.CodeAccepted, h.order(begun).Code)
	first := <-called
	r.crash()

	n, h = newNetwork(t, &o)
	w, called, release := holding(t, o)
	r = start(t, w, n)
	h.await("a hello", func() bool { return len(h.hellos) == 1 })
	require.Equal(t, []protocol.Kept{{ChunkID: done.ChunkID, OrderMAC: "ticket"}}, h.hellos[0].Kept)
	require.Equal(t, []string{begun.ChunkID}, h.hellos[0].Running)
	require.Equal(t, "aa", string(h.all(done.ChunkID, 2)[0].Value))
	// What had begun begins again, and what had not begins.
	close(release)
	require.ElementsMatch(t, []string{"c", "d"}, []string{<-called, <-called})
	require.Contains(t, []string{"c", "d"}, first)
	require.Equal(t, "d", string(h.all(begun.ChunkID, 2)[1].Value))
	r.idle()
}

func TestAWorkerForgetsWhatItsHeadDoesNotKnow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n, h, o := withHead(t)
	o.State = dir
	w, called, _ := holding(t, o)
	r := start(t, w, n)
	order := goOrder("held", "c", "d")
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	<-called
	<-called
	r.crash()

	n = newMemory()
	h = newHead(t, n, headID)
	other := newHead(t, n, "12D3KooWOther")
	o.Heads = append(o.Heads, "/ip4/127.0.0.1/tcp/2/p2p/"+other.id)
	asked, answer := make(chan struct{}, 10), make(chan struct{})
	h.hello = func(*protocol.Hello) *protocol.HelloResponse {
		asked <- struct{}{}
		<-answer
		return &protocol.HelloResponse{Code: protocol.CodeOK, Unknown: []string{order.ChunkID}}
	}
	o.Network = n
	w, called, _ = holding(t, o)
	r = start(t, w, n)
	<-asked
	// What another head orders passes what waits for the answer.
	later := goOrder("double", "later")
	require.Equal(t, protocol.CodeAccepted, other.order(later).Code)
	other.all(later.ChunkID, 1)
	require.Empty(t, called)
	close(answer)
	r.idle()
	require.Empty(t, called, "what the head does not want does not run")
	require.Empty(t, h.outcomes)
}

func TestAStoreIsUsedByOneWorkerAtATime(t *testing.T) {
	t.Parallel()
	o := options(newMemory())
	o.State = t.TempDir()
	run(t, o)
	o.Network = newMemory()
	w, err := New(o)
	require.NoError(t, err)
	require.ErrorContains(t, w.Run(t.Context()), "store")
}

func TestAWorkerThatStopsGivesBackWhatHasNotBegun(t *testing.T) {
	t.Parallel()
	n, h, o := withHead(t)
	o.Slots = 1
	w, called, release := holding(t, o)
	r := start(t, w, n)
	order := goOrder("held", "a", "b", "c", "d", "e", "f")
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	runs := <-called
	r.awaitHead()
	r.stop()
	h.await("a goodbye", func() bool { return len(h.goodbyes) == 1 })
	require.Equal(t, protocol.CodeUnavailable, h.order(goOrder("double", "a")).Code)
	close(release)
	require.NoError(t, r.end())
	returned := map[int]bool{}
	for _, m := range h.goodbyes {
		for _, b := range m.Returned {
			require.Equal(t, order.ChunkID, b.ChunkID)
			for _, i := range b.Indexes {
				require.False(t, returned[i], "given back twice")
				returned[i] = true
			}
		}
	}
	got := h.outcomes[order.ChunkID]
	require.Len(t, got, len(order.Items)-len(returned))
	for i, all := range got {
		require.False(t, returned[i], "item %d was given back and has a result", i)
		require.Equal(t, string(order.Items[i].Args), string(all[0].Value))
	}
	require.False(t, returned[int(runs[0]-'a')], "what ran was given back")
	require.NotEmpty(t, returned)
}

func TestWhatDoesNotEndInTimeIsGivenBack(t *testing.T) {
	t.Parallel()
	n, h, o := withHead(t)
	o.DrainTimeout = 50 * time.Millisecond
	w, called, _ := holding(t, o)
	r := start(t, w, n)
	order := goOrder("held", "a")
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	<-called
	r.awaitHead()
	require.NoError(t, r.end())
	last := h.goodbyes[len(h.goodbyes)-1]
	require.Equal(t, []protocol.Returned{{ChunkID: order.ChunkID, Indexes: []int{0}}}, last.Returned)
	require.Empty(t, h.outcomes)
}

func TestLargeResultsAreBlobsUntilTheyAreAcknowledged(t *testing.T) {
	t.Parallel()
	n := newMemory()
	h := newHead(t, n, headID)
	large := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	var fetched []byte
	h.results = func(m *protocol.WorkOrderBatchResponse) *protocol.Ack {
		for _, o := range m.Outcomes {
			if o.Blob == nil {
				continue
			}
			content, size, err := n.handler.Blob(t.Context(), headID, o.Blob.ID)
			require.NoError(t, err)
			require.EqualValues(t, len(large), size)
			require.Equal(t, size, o.Blob.Size)
			_, err = content.Seek(5, 0)
			require.NoError(t, err)
			var b bytes.Buffer
			_, err = b.ReadFrom(content)
			require.NoError(t, err)
			require.NoError(t, content.Close())
			fetched = b.Bytes()
			_, _, err = n.handler.Blob(t.Context(), "12D3KooWStranger", o.Blob.ID)
			require.ErrorIs(t, err, ErrNoBlob)
		}
		return &protocol.Ack{Code: protocol.CodeOK}
	}
	w, err := New(options(n))
	require.NoError(t, err)
	require.NoError(t, w.Register("large", func(context.Context, []byte) ([]byte, error) { return large, nil }))
	r := start(t, w, n)
	order := goOrder("large", "a")
	require.Equal(t, protocol.CodeAccepted, h.order(order).Code)
	got := h.all(order.ChunkID, 1)[0]
	require.Empty(t, got.Value)
	require.Equal(t, large[5:], fetched)
	require.Equal(t, cidOf(t, large), got.Blob.ID)
	r.idle()
	_, _, err = n.handler.Blob(t.Context(), headID, got.Blob.ID)
	require.ErrorIs(t, err, ErrNoBlob)
}

func TestOptionsThatCantBeUsed(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*Options){
		func(o *Options) { o.Heads = nil },
		func(o *Options) { o.Heads = []string{"127.0.0.1:9527"} },
		func(o *Options) { o.Heads = []string{"/p2p/12D3KooW"} },
		func(o *Options) { o.Heads = []string{"/ip4/127.0.0.1/tcp/1/p2p/"} },
		func(o *Options) { o.Heads = []string{"/ip4/127.0.0.1/tcp/1/p2p/a/p2p-circuit"} },
		func(o *Options) { o.MaxItems = -1 },
		func(o *Options) { o.DrainTimeout = -1 },
		func(o *Options) { o.KeyFile = "key" },
		func(o *Options) { o.Network, o.Heads, o.AllowAnyHead = nil, nil, true },
		func(o *Options) { o.Network, o.Key, o.KeyFile = nil, []byte("x"), "key" },
	} {
		o := options(newMemory())
		change(&o)
		_, err := New(o)
		require.ErrorIs(t, err, ErrOptions)
	}
	w, err := New(options(newMemory()))
	require.NoError(t, err)
	require.Error(t, w.Register("a b", functions["double"]))
	require.Error(t, w.Register("nil", nil))
	require.NoError(t, w.Register("double", functions["double"]))
	require.Error(t, w.Register("double", functions["double"]))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("at once"))
	require.Error(t, w.Run(ctx))
	require.Error(t, w.Run(t.Context()))
	require.Error(t, w.Register("late", functions["double"]))
}
