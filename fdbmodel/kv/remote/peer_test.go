package remote

import (
	"bufio"
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
)

// lonePeer is a connection that nobody reads for, and its other end.
func lonePeer(t *testing.T, o ServerOptions) (*peer, net.Conn) {
	store := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	ctx, cancel := context.WithCancel(t.Context())
	s := newServer(ctx, store, o.withDefaults())
	t.Cleanup(s.log.Close)
	near, far := net.Pipe()
	p := newPeer(ctx, cancel, s, near, "lone")
	t.Cleanup(p.end)
	return p, far
}

// keptWatch ends when the test says so.
type keptWatch struct {
	kv.Watch
	done, cancelled chan struct{}
}

func (w *keptWatch) Done() <-chan struct{} { return w.done }

func (*keptWatch) Err() error { return nil }

func (w *keptWatch) Cancel() { close(w.cancelled) }

// watchTx sets one watch.
type watchTx struct {
	kv.Tx
	watch *keptWatch
}

func (t watchTx) Watch([]byte) kv.Watch { return t.watch }

// TestAWatchEndsNoOtherOneOfItsNumber has a client give the number of a watch that it has cancelled to another one,
// before the first has ended: the other one stays, and is cancelled in turn.
func TestAWatchEndsNoOtherOneOfItsNumber(t *testing.T) {
	t.Parallel()
	p, _ := lonePeer(t, ServerOptions{WriteTimeout: time.Millisecond})
	var watches [2]*keptWatch
	for i := range watches {
		watches[i] = &keptWatch{done: make(chan struct{}), cancelled: make(chan struct{})}
		require.True(t, p.addWatch(1, watchTx{watch: watches[i]}, nil))
		if i == 0 {
			p.cancelWatch(1)
			<-watches[0].cancelled
		}
	}
	close(watches[0].done)
	defer close(watches[1].done)
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.watched == watchMemory
	}, patience, time.Millisecond)
	p.cancelWatch(1)
	select {
	case <-watches[1].cancelled:
	default:
		require.Fail(t, "it was forgotten, and the server would wait for its end")
	}
}

// TestAPongHoldsUpNoFrames has a client that reads nothing for a while: what it sends is taken meanwhile.
func TestAPongHoldsUpNoFrames(t *testing.T) {
	t.Parallel()
	p, far := lonePeer(t, ServerOptions{})
	for range 3 {
		_, err := p.take(framePing, nil, batch{})
		require.NoError(t, err)
	}
	kind, _, err := readFrame(bufio.NewReader(far), maxAnswerFrame)
	require.NoError(t, err)
	require.Equal(t, framePong, kind)
}

// lockedConn notes whether its deadline was ever set without the lock of an outbox.
type lockedConn struct {
	net.Conn
	out      *outbox
	unlocked bool
}

func (c *lockedConn) SetWriteDeadline(time.Time) error {
	if c.out.mu.TryLock() {
		c.out.mu.Unlock()
		c.unlocked = true
	}
	return nil
}

func (*lockedConn) Write(b []byte) (int, error) { return len(b), nil }

// TestAWriteNeverPutsOffAHurry has no hurry come between the choice of a deadline and its setting: the deadline that
// it sets would be replaced by a later one.
func TestAWriteNeverPutsOffAHurry(t *testing.T) {
	t.Parallel()
	var o outbox
	conn := &lockedConn{out: &o}
	o.init(conn, time.Minute, maxUnsent)
	require.NoError(t, o.send(framePing, nil, nil))
	o.hurry(time.Second)
	require.NoError(t, o.send(framePing, nil, nil))
	require.False(t, conn.unlocked)
}

// TestAClientComesAfterItHasLeft has a client be back before OnDisconnect has returned: OnConnect has the last word.
func TestAClientComesAfterItHasLeft(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var said []string
	say := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, what)
	}
	leaving, leave := make(chan struct{}), make(chan struct{})
	s := newServer(t.Context(), nil, ServerOptions{
		OnConnect: func(string) { say("here") },
		OnDisconnect: func(string) {
			close(leaving)
			<-leave
			say("gone")
		},
	}.withDefaults())
	defer s.log.Close()
	ended := make(chan struct{})
	close(ended)
	s.come("a", &slot{peer: &peer{cancel: func() {}}, ended: ended})
	s.goAway("a", true)
	<-leaving
	came := make(chan struct{})
	go func() {
		defer close(came)
		s.come("a", &slot{peer: &peer{cancel: func() {}}, ended: ended})
	}()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.clients["a"] != nil
	}, patience, time.Millisecond)
	close(leave)
	<-came
	s.running.Wait()
	require.Equal(t, []string{"here", "gone", "here"}, said)
	require.Empty(t, s.leaving)
}
