package p2p

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

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

// needsMulticast skips a test where no interface carries what discovery sends.
func needsMulticast(t *testing.T) {
	t.Helper()
	interfaces, err := net.Interfaces()
	require.NoError(t, err)
	const flags = net.FlagUp | net.FlagMulticast
	if !slices.ContainsFunc(interfaces, func(i net.Interface) bool {
		return i.Flags&flags == flags && i.Flags&net.FlagLoopback == 0
	}) {
		t.Skip("no network interface has multicast")
	}
}

// TestHostsFindEachOther has a host that only dials find one that listens, by the name of
// their group, and again after that has gone and come back elsewhere. A host of another group and one that
// is not allowed are not found.
func TestHostsFindEachOther(t *testing.T) {
	t.Parallel()
	needsMulticast(t)
	group := fmt.Sprintf("t%d", rand.Uint32())
	key, err := NewKey()
	require.NoError(t, err)
	listens := func(group string) func(*Options) {
		return func(o *Options) { o.LocalDiscovery = group }
	}
	first, _ := start(t, func(o *Options) { o.LocalDiscovery, o.Key = group, key })
	other, _ := start(t, listens(group+"x"))
	stranger, _ := start(t, listens(group))
	a, _ := start(t, func(o *Options) {
		o.LocalDiscovery, o.Listen, o.Allow = group, []string{}, []PeerID{first.ID(), other.ID()}
	})
	found := func() {
		t.Helper()
		require.Eventually(t, func() bool { return a.Connected(first.ID()) }, time.Minute, 10*time.Millisecond)
	}
	found()
	require.False(t, a.Connected(other.ID()))
	require.False(t, a.Connected(stranger.ID()))
	require.NoError(t, first.Close())
	require.Eventually(t, func() bool { return !a.Connected(first.ID()) }, time.Minute, 10*time.Millisecond)
	start(t, func(o *Options) { o.LocalDiscovery, o.Key = group, key })
	found()
}

func TestAnnouncementsAreBounded(t *testing.T) {
	t.Parallel()
	const id = "12D3KooWNbW985igznpKwHAf1pxByyNeipQFtEFLynNrWhsEHkL9"
	require.Empty(t, peersOf([]string{"", "dnsaddr=", "dnsaddr=x", "dnsaddr=/ip4/10.0.0.1/tcp/1", "dnsaddr=/p2p/x"}))
	texts := []string{"dnsaddr=/ip4/10.0.0.1/tcp/1/p2p/" + id, "dnsaddr=nonsense"}
	for i := range 1000 {
		texts = append(texts, fmt.Sprintf("dnsaddr=/ip4/10.0.0.1/tcp/%d/p2p/%s", i+2, id))
	}
	infos := peersOf(texts)
	require.Len(t, infos, 1)
	require.Len(t, infos[0].Addrs, mostAnnounced-1)
}
