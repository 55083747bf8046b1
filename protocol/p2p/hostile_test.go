package p2p

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-multistream"
	"github.com/multiformats/go-varint"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/budget"
)

const meshsub = "/meshsub/1.2.0"

// hostile is a peer without any manners, connected to a host.
func hostile(t *testing.T, to *Host) *node {
	t.Helper()
	key, err := NewKey()
	require.NoError(t, err)
	private, err := parseKey(key)
	require.NoError(t, err)
	limits := DefaultLimits()
	limits.Streams, limits.PeerStreams, limits.PeerBuffers, limits.Buffers = 1e6, 1e6, 1<<40, 1<<40
	n, err := newNode(private, "hostile", limits, &gate{})
	require.NoError(t, err)
	n.Start()
	n.SetStreamHandler(meshsub, func(s network.Stream) { _, _ = io.Copy(io.Discard, s) })
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	infos, err := parsePeers(to.Addrs())
	require.NoError(t, err)
	require.NoError(t, n.Connect(soon(t), infos[0]))
	return n
}

// stream opens a stream of a protocol that both ends have settled. What takes too long before that is no message, and
// counts as none.
func (n *node) stream(t *testing.T, to *Host, name protocol.ID) network.Stream {
	t.Helper()
	for ctx := soon(t); ; {
		s, err := n.Network().NewStream(ctx, to.id)
		require.NoError(t, err)
		require.NoError(t, s.SetDeadline(time.Now().Add(testTime)))
		if err = multistream.SelectProtoOrFail(name, s); err == nil {
			require.NoError(t, s.SetDeadline(time.Time{}))
			return s
		}
		_ = s.Reset()
		require.NoError(t, ctx.Err(), "%v", err)
	}
}

// requireWell checks that a host serves others, and that hostile peers hold nothing of
// it any more.
func requireWell(t *testing.T, h *Host) {
	t.Helper()
	friend, _ := start(t, nil)
	connect(t, friend, h)
	var answer []byte
	require.Eventually(t, func() bool {
		var err error
		answer, err = friend.Call(soon(t), h.ID(), []byte("x")) // the host's patience may be short
		return err == nil
	}, testTime, time.Millisecond)
	require.Equal(t, "echo x", string(answer))
}

func requireNothingHeld(t *testing.T, h *Host) {
	t.Helper()
	all := &h.table.all
	require.Eventually(t, func() bool {
		for _, b := range []*budget.Bytes{all.room.free, all.room.turns, all.handlers} {
			if !b.TryAcquire(b.Total()) {
				return false
			}
			b.Release(b.Total())
		}
		return true
	}, testTime, time.Millisecond)
}

func TestSlowStreams(t *testing.T) {
	t.Parallel()
	h, _ := start(t, func(o *Options) { o.Limits.MessageTimeout = 300 * time.Millisecond })
	evil := hostile(t, h)
	const streams = 100
	var open []network.Stream
	for i := range streams {
		s := evil.stream(t, h, []protocol.ID{ProtocolB7s, ProtocolFutura, ProtocolBlob}[i%2])
		_, err := s.Write([]byte("{"))
		require.NoError(t, err)
		open = append(open, s)
	}
	requireWell(t, h)
	for _, s := range open {
		require.NoError(t, s.SetReadDeadline(time.Now().Add(testTime)))
		_, err := io.ReadAll(s)
		require.ErrorIs(t, err, network.ErrReset)
	}
	require.Equal(t, int64(streams), h.Stats().RefusedSlow)
	requireNothingHeld(t, h)
}

// trickle writes a byte now and then, until the stream is reset.
func trickle(t *testing.T, s network.Stream) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx := soon(t); ; {
		if _, err := s.Write([]byte("x")); err != nil {
			require.ErrorIs(t, err, network.ErrReset)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			require.FailNow(t, "the stream lives for ever")
		}
	}
}

// TestTrickle writes a byte now and then: each comes in time for itself alone.
func TestTrickle(t *testing.T) {
	t.Parallel()
	h, _ := start(t, func(o *Options) { o.Limits.MessageTimeout = 300 * time.Millisecond })
	s := hostile(t, h).stream(t, h, ProtocolB7s)
	trickle(t, s)
	require.Equal(t, int64(1), h.Stats().RefusedSlow)
}

func TestOversizedFrames(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	h, box := start(t, func(o *Options) { o.Limits.MaxMessage = limit })
	evil := hostile(t, h)
	for _, name := range []protocol.ID{ProtocolB7s, ProtocolFutura} {
		s := evil.stream(t, h, name)
		require.NoError(t, s.SetDeadline(time.Now().Add(testTime)))
		_, err := io.CopyN(s, endless{}, 1<<30)
		require.ErrorIs(t, err, network.ErrReset)
	}
	require.Equal(t, int64(2), h.Stats().RefusedLarge)
	fits := bytes.Repeat([]byte("x"), limit)
	s := evil.stream(t, h, ProtocolB7s)
	_, err := s.Write(append(fits, '\n'))
	require.NoError(t, err)
	require.Len(t, box.next(t).text, limit)
	require.Empty(t, box)
	requireWell(t, h)
	requireNothingHeld(t, h)
}

// TestManyLargeMessages sends more at once than a peer may have in memory, and ends none
// of it. Memory is measured, so it is not parallel.
func TestManyLargeMessages(t *testing.T) {
	const streams, size = 64, 4 << 20
	h, box := start(t, func(o *Options) {
		l := &o.Limits
		l.MaxMessage, l.PeerStreams, l.PeerMemory = size, 2*streams, 2*size
		l.MessageTimeout, l.MinRate = 500*time.Millisecond, 1<<30
	})
	evil := hostile(t, h)
	before := memory()
	var over sync.WaitGroup
	for range streams {
		s := evil.stream(t, h, ProtocolB7s)
		over.Go(func() {
			_, _ = io.CopyN(s, endless{}, size-1)
			_, _ = io.Copy(io.Discard, s) // until it is reset
		})
	}
	done := make(chan struct{})
	go func() {
		over.Wait()
		close(done)
	}()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	var most uint64
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		case <-look.C:
			most = max(most, memory().HeapAlloc)
		}
	}
	grown := mb(most) - mb(before.HeapAlloc)
	bound := float64(3*size+2*streams*small+streams*window) / (1 << 20)
	t.Logf("%.1f MB at most for %d MB of messages; the bound is %.1f MB", grown, streams*size>>20, bound)
	require.Less(t, grown, 2*bound, "and what is collected later")
	require.Empty(t, box)
	stats := h.Stats()
	require.Equal(t, int64(streams), stats.RefusedBusy+stats.RefusedSlow)
	requireNothingHeld(t, h)
	requireWell(t, h)
}

// endless has neither end nor newlines.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// TestFlood sends messages faster than they are handled, over more streams than a peer
// may have.
func TestFlood(t *testing.T) {
	t.Parallel()
	var running, most, handled atomic.Int64
	release := make(chan struct{})
	h := open(t, func(o *Options) { o.Limits.PeerHandlers, o.Limits.PeerStreams = 3, 20 })
	h.OnCall(echo)
	evil := make(chan *node, 1)
	full := make(chan struct{}, 1000)
	h.OnMessage(func(ctx context.Context, _ PeerID, _ []byte, _ bool) {
		now := running.Add(1)
		for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
		}
		full <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		running.Add(-1)
		handled.Add(1)
	})
	require.NoError(t, h.Start())
	evil <- hostile(t, h)
	n := <-evil
	accepted := 0
	for range 200 {
		s, err := n.NewStream(soon(t), h.id, ProtocolB7s)
		if err != nil {
			continue
		}
		if _, err = s.Write([]byte("x\n")); err == nil {
			accepted++
		}
	}
	require.Greater(t, accepted, 20)
	for range 3 {
		<-full
	}
	requireWell(t, h)
	require.Equal(t, int64(3), running.Load())
	close(release)
	requireNothingHeld(t, h)
	require.Equal(t, int64(3), most.Load())
	require.Less(t, handled.Load(), int64(40), "streams beyond the limit were refused")
}

// TestMillionTopics subscribes to topics that the host does not have. Memory is
// measured, so it is not parallel.
func TestMillionTopics(t *testing.T) {
	h, _ := start(t, nil)
	evil := hostile(t, h)
	s := evil.stream(t, h, meshsub)
	before := memory()
	topics, half := 0, 500_000
	if testing.Short() {
		half = 50_000
	}
	for _, many := range []int{maxSubscriptions, 10 * maxSubscriptions} {
		for range half / many {
			var message pb.RPC
			for range many {
				name, yes := fmt.Sprintf("topic-%d", topics), true
				topics++
				message.Subscriptions = append(message.Subscriptions, &pb.RPC_SubOpts{Subscribe: &yes, Topicid: &name})
			}
			require.NoError(t, s.SetDeadline(time.Now().Add(testTime)))
			require.NoError(t, writeRPC(s, &message))
		}
	}
	general, yes := TopicGeneral, true
	require.NoError(t, writeRPC(s, &pb.RPC{Subscriptions: []*pb.RPC_SubOpts{{Subscribe: &yes, Topicid: &general}}}))
	require.NoError(t, h.WaitTopicPeers(soon(t), TopicGeneral, 1), "all before it was taken too")
	after := memory()
	t.Logf("%d topics: heap %.1f MB before, %.1f MB after", topics, mb(before.HeapAlloc), mb(after.HeapAlloc))
	require.Less(t, mb(after.HeapAlloc), mb(before.HeapAlloc)+4)
	requireWell(t, h)
}

func writeRPC(s network.Stream, message *pb.RPC) error {
	b, err := message.Marshal()
	if err == nil {
		_, err = s.Write(append(varint.ToUvarint(uint64(len(b))), b...))
	}
	return err
}

func TestConnectionsOfAPeer(t *testing.T) {
	t.Parallel()
	h, _ := start(t, func(o *Options) { o.Limits.PeerConns = 2 })
	evil := hostile(t, h)
	infos, err := parsePeers(h.Addrs())
	require.NoError(t, err)
	for range 20 {
		// A dial of its own each time, over the transport below the network.
		transport := evil.swarm.TransportForDialing(infos[0].Addrs[0])
		c, err := transport.Dial(soon(t), infos[0].Addrs[0], h.id)
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	require.LessOrEqual(t, len(h.node.Network().ConnsToPeer(evil.ID())), 2)
	requireWell(t, h)
}

// TestFloodOfGossip relays messages without signatures as fast as possible.
func TestFloodOfGossip(t *testing.T) {
	t.Parallel()
	h, box := start(t, func(o *Options) { o.Limits.PeerRate, o.Limits.PeerBurst = 1, 100 })
	evil := hostile(t, h)
	s := evil.stream(t, h, meshsub)
	topic := TopicGeneral
	const sent = 20_000
	for i := range sent / 10 {
		var message pb.RPC
		for range 10 {
			message.Publish = append(message.Publish, &pb.Message{
				From: []byte(evil.ID()), Topic: &topic, Data: []byte("x"), Seqno: fmt.Appendf(nil, "%8d", i),
			})
		}
		require.NoError(t, s.SetDeadline(time.Now().Add(testTime)))
		require.NoError(t, writeRPC(s, &message))
	}
	friend, _ := start(t, nil)
	connect(t, friend, h)
	require.NoError(t, friend.WaitTopicPeers(soon(t), TopicGeneral, 1))
	require.Equal(t, friend.ID(), relayed(t, friend, TopicGeneral, box).from)
	require.Eventually(t, func() bool { return h.Stats().FastGossip > sent*9/10 }, testTime, time.Millisecond)
	requireWell(t, h)
}
