package p2p

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/clock"
)

// tap is a log that calls when a text comes.
type tap struct {
	slog.Handler
	text string
	call func(slog.Record)
}

func onLog(text string, call func(slog.Record)) *slog.Logger {
	return slog.New(tap{slog.DiscardHandler, text, call})
}

func (tap) Enabled(context.Context, slog.Level) bool { return true }

func (l tap) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l tap) Handle(_ context.Context, r slog.Record) error {
	if r.Message == l.text {
		l.call(r)
	}
	return nil
}

// advance moves a clock to its next timer, once there is one.
func advance(t *testing.T, c *clock.Virtual) time.Duration {
	t.Helper()
	for ctx := soon(t); ctx.Err() == nil; runtime.Gosched() {
		if next, ok := c.Next(); ok {
			wait := next.Sub(c.Now())
			c.Advance(wait)
			return wait
		}
	}
	require.FailNow(t, "no timer was set")
	return 0
}

// TestRestartsOfABootNode dials one that is not there yet, that goes and comes back
// under the same key.
func TestRestartsOfABootNode(t *testing.T) {
	t.Parallel()
	key, err := NewKey()
	require.NoError(t, err)
	same := func(o *Options) { o.Key = key }
	first, _ := start(t, same)
	address := first.Addrs()[0]
	require.NoError(t, first.Close())

	virtual := clock.NewVirtual(time.Unix(1e9, 0))
	failed := make(chan struct{}, 100)
	a := open(t, func(o *Options) {
		o.Clock, o.BootNodes, o.Listen = virtual, []string{address}, []string{}
		o.RedialMin, o.RedialMax = time.Second, 4*time.Second
		o.Logger = onLog("can't reach a boot node", func(slog.Record) { failed <- struct{}{} })
	})
	seen := make(chan Peer, 100)
	a.OnPeer(func(p Peer) { seen <- p })
	a.OnCall(echo)
	require.NoError(t, a.Start())
	for _, about := range []time.Duration{1, 2, 4, 4, 4} {
		<-failed
		require.InEpsilon(t, about*time.Second, advance(t, virtual), 0.21)
	}
	require.GreaterOrEqual(t, a.Stats().DialFailures, int64(5))

	session := uint64(0)
	for range 2 {
		b, _ := start(t, func(o *Options) {
			same(o)
			o.Listen = []string{address[:len(address)-len("/p2p/")-len(first.ID())]}
		})
		require.Equal(t, first.ID(), b.ID())
		stop := keepMoving(virtual)
		came := make(chan Peer, 100)
		b.OnPeer(func(p Peer) { came <- p })
		until(t, came, func(p Peer) bool { return p.Futura })
		stop()
		session = until(t, seen, func(p Peer) bool { return p.Connected && p.Futura && p.Session > session }).Session
		answer, err := b.Call(soon(t), a.ID(), []byte("hi"))
		require.NoError(t, err)
		require.Equal(t, "echo hi", string(answer))
		require.NoError(t, b.Close())
		until(t, seen, func(p Peer) bool { return !p.Connected })
	}
}

// keepMoving moves a clock to its next timers until stop is called.
func keepMoving(c *clock.Virtual) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-over:
				return
			case <-time.After(time.Millisecond):
			}
			if next, ok := c.Next(); ok {
				c.Advance(next.Sub(c.Now()))
			}
		}
	}()
	return func() {
		close(over)
		<-done
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int]time.Duration{1: 1, 2: 2, 3: 4, 4: 8, 5: 10, 6: 10, 31: 10, 64: 10, 1e9: 10} {
		least := backoff(failures, time.Second, 10*time.Second, 0)
		most := backoff(failures, time.Second, 10*time.Second, 1)
		require.InDelta(t, 0.8*float64(want), least.Seconds(), 1e-6, failures)
		require.InDelta(t, 1.2*float64(want), most.Seconds(), 1e-6, failures)
	}
}

// TestProtocolAnnouncedLate sends to a peer that has no handler when it is asked for
// the first time, as b7s's nodes have none when they start.
func TestProtocolAnnouncedLate(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	a, _ := start(t, func(o *Options) {
		o.Limits.ProtocolTimeout = time.Minute
		o.Logger = onLog("waiting for a peer to announce a protocol", func(slog.Record) { asked <- struct{}{} })
	})
	b := open(t, nil)
	require.NoError(t, b.Start())
	connect(t, a, b)
	box := make(inbox, 10)
	go func() {
		<-asked
		b.OnMessage(box.take)
		<-asked
		b.OnCall(echo)
	}()
	require.NoError(t, a.Send(soon(t), b.ID(), []byte("late")))
	require.Equal(t, "late", box.next(t).text)
	for len(asked) > 0 {
		<-asked
	}
	answer, err := a.Call(soon(t), b.ID(), []byte("later"))
	require.NoError(t, err)
	require.Equal(t, "echo later", string(answer))

	ctx, cancel := context.WithCancel(t.Context())
	c := open(t, nil)
	require.NoError(t, c.Start())
	connect(t, a, c)
	go func() {
		<-asked
		cancel()
	}()
	_, err = a.Call(ctx, c.ID(), []byte("never"))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, ErrNotSent)
}

func TestProtocolNeverAnnounced(t *testing.T) {
	t.Parallel()
	a, _ := start(t, func(o *Options) { o.Limits.ProtocolTimeout = time.Millisecond })
	b := open(t, nil)
	require.NoError(t, b.Start())
	connect(t, a, b)
	_, err := a.Call(soon(t), b.ID(), []byte("x"))
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorIs(t, err, ErrNotSent)
}
