package p2p

import (
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
	"github.com/stretchr/testify/require"
)

// TestFoundPeers hands a host what the local network announces.
func TestFoundPeers(t *testing.T) {
	t.Parallel()
	friend, _ := start(t, nil)
	foe, _ := start(t, nil)
	a, _ := start(t, func(o *Options) { o.Deny = []PeerID{foe.ID()} })
	d := &discovery{host: a, slot: make(chan struct{}, 1), dialing: map[peer.ID]bool{}}
	seen := make(chan Peer, 10)
	a.OnPeer(func(p Peer) { seen <- p })
	far, err := multiaddr.NewMultiaddr("/ip4/8.8.8.8/tcp/53")
	require.NoError(t, err)
	d.HandlePeerFound(peer.AddrInfo{ID: foe.id, Addrs: foe.node.Addrs()})
	d.HandlePeerFound(peer.AddrInfo{ID: a.id, Addrs: a.node.Addrs()})
	d.HandlePeerFound(peer.AddrInfo{ID: friend.id, Addrs: []multiaddr.Multiaddr{far}})
	require.Empty(t, d.slot, "none of these is dialled")
	for range 10 {
		d.HandlePeerFound(peer.AddrInfo{ID: friend.id, Addrs: append(friend.node.Addrs(), far)})
	}
	require.Equal(t, friend.ID(), until(t, seen, func(p Peer) bool { return p.Connected }).ID)
	require.Len(t, a.Peers(), 1)
}

func TestNamesOfGroups(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a b", "A", "-a", "a-", "0123456789abcdef", "a.b"} {
		_, err := Open(t.Context(), Options{LocalDiscovery: name})
		require.ErrorIs(t, err, ErrOptions, name)
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a?[2Jb", printable("a\x1b[2Jb"))
	require.Len(t, printable(string(make([]byte, 1000))), 64)
}
