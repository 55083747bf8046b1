package p2p

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// testTime is how long a test waits for what must happen.
const testTime = time.Minute

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// inbox keeps messages that a host took.
type inbox chan letter

type letter struct {
	from      PeerID
	text      string
	published bool
}

func (i inbox) take(_ context.Context, from PeerID, message []byte, published bool) {
	i <- letter{from, string(message), published}
}

func (i inbox) next(t *testing.T) letter {
	t.Helper()
	select {
	case l := <-i:
		return l
	case <-t.Context().Done():
	case <-time.After(testTime):
	}
	require.FailNow(t, "no message came")
	return letter{}
}

// echo answers with what it was sent.
func echo(_ context.Context, _ PeerID, message []byte) []byte {
	return append([]byte("echo "), message...)
}

// open opens a host on loopback that is closed with the test. configure may be nil.
func open(t *testing.T, configure func(*Options)) *Host {
	t.Helper()
	o := Options{}
	if configure != nil {
		configure(&o)
	}
	h, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

// start opens a host that takes messages, answers calls and listens.
func start(t *testing.T, configure func(*Options)) (*Host, inbox) {
	t.Helper()
	h := open(t, configure)
	box := make(inbox, 1024)
	h.OnMessage(box.take)
	h.OnCall(echo)
	require.NoError(t, h.Start())
	return h, box
}

// soon is a context for what must happen soon.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	t.Cleanup(cancel)
	return ctx
}

func connect(t *testing.T, from, to *Host) {
	t.Helper()
	id, err := from.Connect(soon(t), to.Addrs()[0])
	require.NoError(t, err)
	require.Equal(t, to.ID(), id)
}

// until waits until a peer stands as wanted.
func until(t *testing.T, peers <-chan Peer, wanted func(Peer) bool) Peer {
	t.Helper()
	ctx := soon(t)
	for {
		select {
		case p := <-peers:
			if wanted(p) {
				return p
			}
		case <-ctx.Done():
			require.FailNow(t, "the peer never stood as wanted")
		}
	}
}
