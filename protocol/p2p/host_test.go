package p2p

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestExchange(t *testing.T) {
	t.Parallel()
	a, fromB := start(t, nil)
	b, fromA := start(t, nil)
	connect(t, a, b)
	// Both directions go over one connection, whoever dialled.
	require.NoError(t, a.Send(soon(t), b.ID(), []byte(`{"type":"a"}`)))
	require.Equal(t, letter{a.ID(), `{"type":"a"}`, false}, fromA.next(t))
	require.NoError(t, b.Send(soon(t), a.ID(), []byte(`{"type":"b"}`)))
	require.Equal(t, letter{b.ID(), `{"type":"b"}`, false}, fromB.next(t))
	for _, size := range []int{1, small - 1, small, small + 1, 3 << 20, 16 << 20} {
		message := strings.Repeat("x", size)
		require.NoError(t, a.Send(soon(t), b.ID(), []byte(message)))
		require.True(t, fromA.next(t).text == message, size)
	}
	large := strings.Repeat("y", 16<<20-len("echo "))
	for _, message := range []string{"1", large} {
		answer, err := b.Call(soon(t), a.ID(), []byte(message))
		require.NoError(t, err)
		require.True(t, string(answer) == "echo "+message)
	}
	require.Equal(t, int64(0), b.Stats().RefusedOther)
}

func TestMessagesThatCanNotBeSent(t *testing.T) {
	t.Parallel()
	a, _ := start(t, func(o *Options) { o.Limits.MaxMessage = 1000 })
	b, _ := start(t, nil)
	connect(t, a, b)
	err := a.Send(soon(t), b.ID(), make([]byte, 1001))
	require.ErrorIs(t, err, ErrTooLarge)
	require.ErrorIs(t, err, ErrNotSent)
	err = a.Send(soon(t), b.ID(), []byte("{\n}"))
	require.ErrorIs(t, err, ErrNewline)
	require.ErrorIs(t, err, ErrNotSent)
	_, err = a.Call(soon(t), "nobody", []byte("x"))
	require.ErrorIs(t, err, ErrPeerID)
	require.ErrorIs(t, err, ErrNotSent)
	other, err := NewKey()
	require.NoError(t, err)
	stranger, err := KeyID(other)
	require.NoError(t, err)
	require.ErrorIs(t, a.Send(soon(t), stranger, []byte("x")), ErrNotSent)
}

func TestEventsOfPeers(t *testing.T) {
	t.Parallel()
	a, _ := start(t, nil)
	b, _ := start(t, func(o *Options) { o.Version = "v7" })
	seen := make(chan Peer, 100)
	a.OnPeer(func(p Peer) { seen <- p })
	connect(t, b, a)
	first := until(t, seen, func(p Peer) bool { return p.B7s && p.Futura && p.Agent != "" })
	require.Equal(t, b.ID(), first.ID)
	require.Equal(t, "futura/v7", first.Agent)
	require.True(t, first.Connected)
	b7s, futura := a.Speaks(b.ID())
	require.True(t, b7s && futura)
	require.Equal(t, []Peer{first}, a.Peers())
	require.NoError(t, b.Disconnect(a.ID()))
	until(t, seen, func(p Peer) bool { return !p.Connected && p.Session == first.Session })
	b7s, futura = a.Speaks(b.ID())
	require.False(t, b7s || futura)
	connect(t, b, a)
	until(t, seen, func(p Peer) bool { return p.Connected && p.Session > first.Session })
}

func TestGossip(t *testing.T) {
	t.Parallel()
	topics := func(o *Options) { o.Topics = []string{"more"}; o.Limits.MaxGossip = 1000 }
	a, toA := start(t, topics)
	b, _ := start(t, topics)
	c, toC := start(t, topics)
	connect(t, a, b)
	connect(t, c, b) // a and c know each other by b alone
	for _, topic := range []string{TopicGeneral, "more"} {
		require.NoError(t, b.WaitTopicPeers(soon(t), topic, 2))
		require.NoError(t, a.WaitTopicPeers(soon(t), topic, 1))
		require.Equal(t, letter{a.ID(), topic, true}, relayed(t, a, topic, toC))
	}
	require.Empty(t, toA, "own messages are skipped")
	err := a.Publish(soon(t), "unknown", []byte("x"))
	require.ErrorIs(t, err, ErrUnknownTopic)
	require.ErrorContains(t, err, "more")
	require.ErrorIs(t, a.WaitTopicPeers(soon(t), "unknown", 1), ErrUnknownTopic)
	require.ErrorIs(t, a.Publish(soon(t), "more", make([]byte, 1001)), ErrTooLarge)
}

func TestClosedHost(t *testing.T) {
	t.Parallel()
	a, _ := start(t, nil)
	b, _ := start(t, nil)
	connect(t, a, b)
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	require.ErrorIs(t, a.Send(soon(t), b.ID(), []byte("x")), ErrClosed)
	require.ErrorIs(t, a.Publish(soon(t), TopicGeneral, []byte("x")), ErrClosed)
	_, err := a.Connect(soon(t), b.Addrs()[0])
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, a.Start(), ErrClosed)
}

// relayed publishes until a message arrives that another host relays. Relays have no
// way for messages yet when they know little of their peers.
func relayed(t *testing.T, from *Host, topic string, to inbox) letter {
	t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for ctx := soon(t); ; {
		require.NoError(t, from.Publish(ctx, topic, []byte(topic)))
		for waiting := true; waiting; {
			select {
			case l := <-to:
				if l.text == topic {
					return l
				}
			case <-again.C:
				waiting = false
			case <-ctx.Done():
				require.FailNow(t, "nothing was relayed")
			}
		}
	}
}

func TestListening(t *testing.T) {
	t.Parallel()
	a, _ := start(t, nil)
	for _, address := range a.Addrs() {
		require.Regexp(t, "^/ip4/127.0.0.1/tcp/[0-9]+/p2p/"+string(a.ID())+"$", address)
	}
	// A port of a second process is not shared.
	b := open(t, func(o *Options) { o.Listen = []string{strings.Split(a.Addrs()[0], "/p2p/")[0]} })
	require.ErrorIs(t, b.Start(), ErrAddress)

	web, _ := start(t, func(o *Options) { o.Listen = []string{DefaultListen + "/ws"} })
	require.Contains(t, web.Addrs()[0], "/ws/p2p/")
	connect(t, a, web)
	answer, err := a.Call(soon(t), web.ID(), []byte("over the web"))
	require.NoError(t, err)
	require.Equal(t, "echo over the web", string(answer))
	dials := open(t, func(o *Options) { o.Listen = []string{} })
	require.NoError(t, dials.Start())
	require.Empty(t, dials.Addrs())
}

// TestManyCalls has more calls to a peer under way than the peer takes streams.
func TestManyCalls(t *testing.T) {
	t.Parallel()
	a, _ := start(t, nil)
	b, _ := start(t, nil)
	connect(t, a, b)
	var calls errgroup.Group
	for range 1000 {
		calls.Go(func() error {
			_, err := a.Call(soon(t), b.ID(), []byte("x"))
			return err
		})
	}
	require.NoError(t, calls.Wait())
}
