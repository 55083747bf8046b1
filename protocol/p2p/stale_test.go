package p2p

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// valve passes connections on until it is shut: then nothing moves, and no connection
// ends.
type valve struct {
	listener net.Listener
	shut     chan struct{}
	over     chan struct{}
	work     sync.WaitGroup
}

// newValve passes on to a host's first address.
func newValve(t *testing.T, to *Host) *valve {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	v := &valve{listener: listener, shut: make(chan struct{}), over: make(chan struct{})}
	port := strings.Split(to.Addrs()[0], "/")[4]
	v.work.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", "127.0.0.1:"+port)
			if err != nil {
				_ = in.Close()
				continue
			}
			v.work.Go(func() { v.pass(in, out) })
			v.work.Go(func() { v.pass(out, in) })
		}
	})
	t.Cleanup(func() {
		close(v.over)
		_ = listener.Close()
		v.work.Wait()
	})
	return v
}

func (v *valve) pass(from, to net.Conn) {
	defer func() { _ = from.Close() }()
	read := make(chan []byte)
	v.work.Go(func() {
		defer close(read)
		for {
			b := make([]byte, 4096)
			n, err := from.Read(b)
			if err != nil {
				return
			}
			select {
			case read <- b[:n]:
			case <-v.over:
				return
			}
		}
	})
	for {
		select {
		case <-v.shut:
			<-v.over
			return
		case <-v.over:
			return
		case b, ok := <-read:
			if !ok {
				return
			}
			if _, err := to.Write(b); err != nil && err != io.EOF {
				return
			}
		}
	}
}

// TestPeerThatLostItsWay dials again while its first connection looks alive.
func TestPeerThatLostItsWay(t *testing.T) {
	t.Parallel()
	head, _ := start(t, func(o *Options) { o.Limits.DialTimeout = 2 * time.Second })
	v := newValve(t, head)
	key, err := NewKey()
	require.NoError(t, err)
	same := func(o *Options) { o.Key, o.Listen = key, []string{} }
	lost, _ := start(t, same)
	_, err = lost.Connect(soon(t), "/ip4/127.0.0.1/tcp/"+v.port()+"/p2p/"+string(head.ID()))
	require.NoError(t, err)
	answer, err := head.Call(soon(t), lost.ID(), []byte("before"))
	require.NoError(t, err)
	require.Equal(t, "echo before", string(answer))
	close(v.shut)
	require.NoError(t, lost.Close())

	back, _ := start(t, same)
	connect(t, back, head)
	const before = 15 * time.Second // libp2p looks by itself after 30 s
	require.Eventually(t, func() bool { return len(head.node.Network().ConnsToPeer(back.id)) == 1 }, before,
		time.Millisecond)
	answer, err = head.Call(soon(t), back.ID(), []byte("after"))
	require.NoError(t, err)
	require.Equal(t, "echo after", string(answer))
	require.Len(t, head.Peers(), 1)
}

func (v *valve) port() string {
	_, port, _ := net.SplitHostPort(v.listener.Addr().String())
	return port
}

// TestPing holds a live connection to be one.
func TestPing(t *testing.T) {
	t.Parallel()
	a, _ := start(t, nil)
	b, _ := start(t, nil)
	connect(t, a, b)
	require.NoError(t, a.ping(a.node.Network().ConnsToPeer(b.id)[0]))
}
