package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
)

// TestPeersAreShown has a peer say hello to a head, over libp2p on loopback.
func TestPeersAreShown(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	head, _, _ := startHead(t, "--store", s.store, "--peers", "/ip4/127.0.0.1/tcp/0")
	require.NotEmpty(t, head.Peers)
	key, err := p2p.NewKey()
	require.NoError(t, err)
	host, err := p2p.Open(t.Context(), p2p.Options{Key: key, Listen: []string{}, BootNodes: head.Peers[:1]})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, host.Close()) })
	connected := make(chan p2p.PeerID, 16)
	host.OnPeer(func(p p2p.Peer) {
		if p.Connected && p.Futura {
			connected <- p.ID
		}
	})
	require.NoError(t, host.Start())
	hello, err := protocol.Encode(&protocol.Hello{Incarnation: "0123456789abcdef", Functions: []string{"go:f"},
		Capacity: protocol.Capacity{Slots: 7, CPUMillis: 1000, RAMBytes: 1 << 30}}, protocol.DialectFutura)
	require.NoError(t, err)
	answer, err := host.Call(t.Context(), <-connected, hello)
	require.NoError(t, err)
	m, err := protocol.Decode(answer)
	require.NoError(t, err)
	require.Equal(t, protocol.CodeOK, m.(*protocol.HelloResponse).Code, string(answer))

	var list struct {
		Takes bool `json:"takes_peers"`
		Peers []rest.Peer
	}
	require.NoError(t, json.Unmarshal([]byte(s.ok("peers", "--json")), &list))
	require.True(t, list.Takes)
	require.Len(t, list.Peers, 1)
	one := list.Peers[0]
	require.Equal(t, string(host.ID()), one.ID)
	require.Equal(t, []any{true, 7, "futura"}, []any{one.Connected, one.Slots, one.Dialect})
	require.NotEmpty(t, one.Worker)
	table := s.ok("peers")
	require.Contains(t, table, one.ID[len(one.ID)-7:])
	for line := range strings.Lines(table) {
		require.LessOrEqual(t, len([]rune(line)), 80, line)
	}
	_, metrics := ask(t, &head, "GET", "/metrics", "", "")
	require.Contains(t, metrics, "\nfutura_peers_connected 1\n")
	require.Contains(t, metrics, "\nfutura_p2p_peers 1\n")
}

func TestPeersOfAHeadThatTakesNone(t *testing.T) {
	t.Parallel()
	s := &shell{t, "embedded:" + filepath.Join(t.TempDir(), "store")}
	_, text := s.run(exitUsage, "", "peers")
	require.Contains(t, text, "futura dev")
	startHead(t, "--store", s.store)
	out, text := s.run(exitOK, "", "peers")
	require.Regexp(t, "^PEER .*HEARD\n$", out)
	require.Contains(t, text, "--peers")
	s.run(exitUsage, "", "peers", "--limit", "0")
}

// TestTheTableOfPeersIsNarrow prints peers with figures of many digits.
func TestTheTableOfPeersIsNarrow(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	answer, err := json.Marshal(map[string]any{"takes_peers": true, "next": "more", "peers": []rest.Peer{{
		ID: "12D3KooWGRUVh7G4XJuE9VX2ZqNmyJ5y5fBqFfVFA6K1fQ7kzabc", Dialect: "futura", Slots: 4096, Items: 4096,
		Done: 123_456_789, Failed: 1234, Refused: 12, Disagreed: 3, Heard: now.Add(-time.Minute),
	}}})
	require.NoError(t, err)
	rows, err := (&app{}).peerRows(answer, now)
	require.NoError(t, err)
	width := 2 * (len(rows[1]) - 1)
	for i := range rows[1] {
		width += max(len([]rune(rows[0][i])), len([]rune(rows[1][i])))
	}
	require.LessOrEqual(t, width, 80)
	require.Equal(t, []string{"…Q7kzabc", "away", "futura", "4096/4096", "123456789", "1234", "12", "3", "1m0s"},
		rows[1])
	require.Equal(t, []string{"more: --after more"}, rows[2])
}
