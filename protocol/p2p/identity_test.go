package p2p

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/stretchr/testify/require"
)

func TestKeyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	// Many begin at once, and all have the same key.
	var wait sync.WaitGroup
	keys := make([][]byte, 8)
	for i := range keys {
		wait.Go(func() {
			var err error
			keys[i], err = LoadKey(path)
			require.NoError(t, err)
		})
	}
	wait.Wait()
	for _, key := range keys {
		require.Equal(t, keys[0], key)
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Equal(t, int64(68), info.Size())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)

	id, err := KeyID(keys[0])
	require.NoError(t, err)
	require.Regexp(t, "^12D3KooW", id)
	require.Equal(t, id, open(t, func(o *Options) { o.KeyFile = path }).ID())
	require.Equal(t, id, open(t, func(o *Options) { o.Key = keys[0] }).ID())
	require.NotEqual(t, id, open(t, nil).ID())
}

func TestKeysThatAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, err := NewKey()
	require.NoError(t, err)
	another, _, err := crypto.GenerateKeyPair(crypto.Secp256k1, 0)
	require.NoError(t, err)
	other, err := crypto.MarshalPrivateKey(another)
	require.NoError(t, err)
	for name, content := range map[string][]byte{
		"empty": {}, "short": good[:67], "long": append(good[:68:68], 0), "nonsense": make([]byte, 68), "secp256k1": other,
		"huge": make([]byte, 1<<20),
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		_, err := LoadKey(path)
		require.ErrorIs(t, err, ErrKey, name)
		require.ErrorContains(t, err, name)
		_, err = KeyID(content)
		require.ErrorIs(t, err, ErrKey, name)
	}
	exposed := filepath.Join(dir, "exposed")
	require.NoError(t, os.WriteFile(exposed, good, 0o600))
	require.NoError(t, os.Chmod(exposed, 0o640))
	_, err = LoadKey(exposed)
	require.ErrorIs(t, err, ErrKey)
	require.ErrorContains(t, err, "chmod 600")
	_, err = LoadKey(dir)
	require.ErrorIs(t, err, ErrKey)
	_, err = LoadKey(filepath.Join(dir, "none", "key"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestPeerIDs(t *testing.T) {
	t.Parallel()
	const id = "12D3KooWD1JCqEYX8cDiNaWXkSFbLhCCYVs524GSrzw4poUray5u"
	got, err := ParsePeerID(id)
	require.NoError(t, err)
	require.Equal(t, PeerID(id), got)
	for _, text := range []string{"", "x", id + "x", "../" + id, string(make([]byte, 1000))} {
		_, err := ParsePeerID(text)
		require.ErrorIs(t, err, ErrPeerID, text)
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*Options)
		want   error
		text   string
	}{
		{func(o *Options) { o.Listen = []string{"127.0.0.1:80"} }, ErrAddress, "127.0.0.1:80"},
		{func(o *Options) { o.Listen = []string{"/ip4/127.0.0.1/udp/0/quic-v1"} }, ErrAddress, "/tcp/"},
		{func(o *Options) { o.BootNodes = []string{"/ip4/127.0.0.1/tcp/1"} }, ErrAddress, "/p2p/"},
		{func(o *Options) { o.Allow = []PeerID{"x"} }, ErrPeerID, "x"},
		{func(o *Options) { o.Deny = []PeerID{"y"} }, ErrPeerID, "y"},
		{func(o *Options) { o.Key = []byte("x") }, ErrKey, "68"},
		{func(o *Options) { o.Key, o.KeyFile = make([]byte, 68), "x" }, ErrOptions, "both"},
		{func(o *Options) { o.RedialMin = -1 }, ErrOptions, "RedialMin"},
		{func(o *Options) { o.Limits.Peers = -1 }, ErrOptions, "Peers"},
		{func(o *Options) { o.Limits.MinRate = -1 }, ErrOptions, "MinRate"},
		{func(o *Options) { o.Limits.DialTimeout = -1 }, ErrOptions, "DialTimeout"},
		{func(o *Options) { o.Limits.PeerRate = -1 }, ErrOptions, "PeerRate"},
		{func(o *Options) { o.Limits.PeerMemory = 1 }, ErrOptions, "MaxMessage"},
		{func(o *Options) { o.Limits.Memory = DefaultLimits().PeerMemory - 1 }, ErrOptions, "all together"},
		{func(o *Options) { o.Limits.PeerBuffers = 1 }, ErrOptions, "PeerStreams"},
		{func(o *Options) { o.Limits.GossipMemory = int64(DefaultLimits().MaxGossip) }, ErrOptions, "MaxGossip"},
	} {
		var o Options
		c.change(&o)
		_, err := Open(t.Context(), o)
		require.ErrorIs(t, err, c.want)
		require.ErrorContains(t, err, c.text)
	}
	limits := DefaultLimits()
	limits.Memory = limits.PeerMemory
	h, err := Open(t.Context(), Options{Limits: limits})
	require.NoError(t, err, "one peer may have all")
	require.NoError(t, h.Close())
}
