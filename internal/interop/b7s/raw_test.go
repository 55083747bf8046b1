//go:build linux

package b7s

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
)

// messageLimit is for a peer to answer.
const messageLimit = 30 * time.Second

// raw is a peer made of the project's host and messages alone.
type raw struct {
	*p2p.Host
	arrived chan arrival
}

// arrival is a message that a raw peer got.
type arrival struct {
	from      p2p.PeerID
	message   protocol.Message
	published bool
}

// startRaw starts a peer. take takes the messages; the default leaves them to
// receive.
func startRaw(t *testing.T, take func(raw, arrival), boot ...string) raw {
	t.Helper()
	host, err := p2p.Open(t.Context(), p2p.Options{BootNodes: boot})
	require.NoError(t, err)
	const room = 100
	r := raw{Host: host, arrived: make(chan arrival, room)}
	if take == nil {
		take = func(r raw, a arrival) { r.arrived <- a }
	}
	host.OnMessage(func(_ context.Context, from p2p.PeerID, data []byte, published bool) {
		m, err := protocol.Decode(data)
		if err != nil {
			t.Errorf("%v: %.500s", err, data)
			return
		}
		take(r, arrival{from: from, message: m, published: published})
	})
	require.NoError(t, host.Start())
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	return r
}

// publish sends a message to all on b7s's topic.
func (r raw) publish(t *testing.T, d protocol.Dialect, m protocol.Message) {
	t.Helper()
	data, err := protocol.GossipLimits().Encode(m, d)
	require.NoError(t, err)
	require.NoError(t, r.Publish(t.Context(), p2p.TopicGeneral, data))
}

// send sends a message to a peer by b7s's protocol.
func (r raw) send(t *testing.T, to p2p.PeerID, d protocol.Dialect, m protocol.Message) {
	t.Helper()
	data, err := protocol.Encode(m, d)
	require.NoError(t, err)
	require.NoError(t, r.Send(t.Context(), to, data))
}

// receive returns the next messages, by their senders: one of each, all of one
// type.
func receive[M protocol.Message](t *testing.T, r raw, count int) map[p2p.PeerID]M {
	t.Helper()
	got := map[p2p.PeerID]M{}
	limit := time.After(messageLimit)
	for range count {
		select {
		case a := <-r.arrived:
			m, ok := a.message.(M)
			require.True(t, ok, "%T of %s", a.message, a.from)
			require.False(t, a.published)
			require.NotContains(t, got, a.from)
			got[a.from] = m
		case <-limit:
			require.FailNow(t, "messages are missing", "%d of %d", count-len(got), count)
		}
	}
	return got
}
