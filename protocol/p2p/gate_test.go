package p2p

import (
	"testing"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/clock"
)

func TestAllowAndDeny(t *testing.T) {
	t.Parallel()
	friend, _ := start(t, nil)
	foe, _ := start(t, nil)
	stranger, _ := start(t, nil)
	a, _ := start(t, func(o *Options) {
		o.Allow = []PeerID{friend.ID(), foe.ID()}
		o.Deny = []PeerID{foe.ID()}
	})
	connect(t, friend, a)
	for _, other := range []*Host{foe, stranger} {
		// Whoever dials may learn of it only after the handshake.
		_, err := other.Connect(soon(t), a.Addrs()[0])
		if err == nil {
			_, err = other.Call(soon(t), a.ID(), []byte("x"))
		}
		require.Error(t, err)
		_, err = a.Connect(soon(t), other.Addrs()[0])
		require.ErrorIs(t, err, ErrDenied)
		err = a.Send(soon(t), other.ID(), []byte("x"))
		require.ErrorIs(t, err, ErrDenied)
		require.ErrorIs(t, err, ErrNotSent)
		require.ErrorIs(t, a.FetchBlob(soon(t), other.ID(), BlobID([32]byte{}), nil, FetchOptions{}), ErrDenied)
	}
	answer, err := friend.Call(soon(t), a.ID(), []byte("x"))
	require.NoError(t, err)
	require.Equal(t, "echo x", string(answer))
	require.Len(t, a.Peers(), 1)
}

// TestJudgedGossip holds a topic's validator to the author, the size and the rate of
// messages, whoever relays them.
func TestJudgedGossip(t *testing.T) {
	t.Parallel()
	denied, err := newTestID()
	require.NoError(t, err)
	author, err := newTestID()
	require.NoError(t, err)
	virtual := clock.NewVirtual(time.Unix(1e9, 0))
	a := open(t, func(o *Options) {
		o.Clock, o.Deny = virtual, []PeerID{nameOf(denied)}
		o.Limits.MaxGossip, o.Limits.AuthorRate, o.Limits.AuthorBurst, o.Limits.Peers = 100, 1, 3, 8
	})
	judge := func(from peer.ID, size int) pubsub.ValidationResult {
		return a.gossip.judge(t.Context(), author, &pubsub.Message{
			Message: &pb.Message{From: []byte(from), Data: make([]byte, size)}, ReceivedFrom: author,
		})
	}
	require.Equal(t, pubsub.ValidationReject, judge(author, 101))
	require.Equal(t, pubsub.ValidationReject, judge(author, 0))
	require.Equal(t, pubsub.ValidationIgnore, judge(denied, 1))
	for range 3 {
		require.Equal(t, pubsub.ValidationAccept, judge(author, 100))
	}
	require.Equal(t, pubsub.ValidationIgnore, judge(author, 100))
	require.Equal(t, pubsub.ValidationAccept, judge(a.id, 100), "own messages have no rate")
	virtual.Advance(time.Second)
	require.Equal(t, pubsub.ValidationAccept, judge(author, 100))
	require.Equal(t, pubsub.ValidationIgnore, judge(author, 100))
	require.Equal(t, int64(2), a.Stats().FastGossip)
	require.Equal(t, int64(2), a.Stats().LargeGossip)

	for range 100 {
		other, err := newTestID()
		require.NoError(t, err)
		require.Equal(t, pubsub.ValidationAccept, judge(other, 1))
		require.LessOrEqual(t, len(a.gossip.authors), 16, "authors are forgotten")
	}
}

func newTestID() (peer.ID, error) {
	key, err := NewKey()
	if err != nil {
		return "", err
	}
	id, err := KeyID(key)
	if err != nil {
		return "", err
	}
	return decodePeer(id)
}
