package peerhead_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/clock"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/peerhead"
)

// leaping is a clock that leaps, as that of a process does which was stopped.
type leaping struct{ ahead atomic.Int64 }

func (l *leaping) leap(d time.Duration) { l.ahead.Add(int64(d)) }

func (l *leaping) offset() time.Duration { return time.Duration(l.ahead.Load()) }

func (l *leaping) Now() time.Time { return time.Now().Add(l.offset()) }

func (l *leaping) At(t time.Time) clock.Timer { return clock.Real{}.At(t.Add(-l.offset())) }

func (l *leaping) AfterFunc(t time.Time, f func()) (stop func()) {
	return clock.Real{}.AfterFunc(t.Add(-l.offset()), f)
}

// TestAHeadThatWasStopped has a head be stopped for longer than a peer may be silent. Peers
// that work are not taken for lost by it; one that has died is, soon after.
func TestAHeadThatWasStopped(t *testing.T) {
	c := new(leaping)
	inWorldBy(t, c, peerhead.Options{Grace: 2 * time.Second}, func(w *world) {
		busy := func(p *fakePeer) { p.takes = 30 * time.Second }
		for _, name := range []string{"a", "b", "c"} {
			w.join(name, 1, busy)
		}
		dies := w.join("dies", 1, busy)
		ids := w.submit(4)
		w.settle(3*time.Second + 200*time.Millisecond) // just after a report
		before := map[peerhead.PeerID]string{}
		for _, p := range w.head.Peers() {
			require.Equal(w, 1, p.Items)
			before[p.ID] = p.Worker
		}
		dies.silent = true
		c.leap(40 * time.Second)
		w.settle(12 * time.Second)
		for _, p := range w.head.Peers() {
			if p.ID == dies.id {
				require.Empty(w, p.Worker)
				continue
			}
			require.Equal(w, before[p.ID], p.Worker, "peer %s", p.ID)
		}
		w.settle(2 * time.Minute)
		w.requireEchoes(ids)
	})
}

// TestAStoreThatStalls has the store answer nothing for longer than a peer may be silent,
// while the peer waits for the head to take its results.
func TestAStoreThatStalls(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		w.join("p", 1, func(p *fakePeer) { p.takes = 900 * time.Millisecond })
		ids := w.submit(1)
		w.settle(500 * time.Millisecond)
		before := w.head.Peers()[0].Worker
		require.NotEmpty(w, before)
		end := w.stall()
		w.settle(15 * time.Second)
		require.Equal(w, before, w.head.Peers()[0].Worker)
		end()
		w.settle(10 * time.Second)
		w.requireEchoes(ids)
		require.Equal(w, 1, w.runs())
	})
}

// TestALostPeerIsToldByItsResults has a peer be taken for lost that has nothing left to
// report but results.
func TestALostPeerIsToldByItsResults(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 1, func(p *fakePeer) { p.silent = true })
		ids := w.submit(2)
		w.settle(20 * time.Second)
		require.Empty(w, w.head.Peers()[0].Worker)
		p.silent = false
		chunk := p.unacknowledged()[0]
		require.Equal(w, protocol.CodeNotAuthorized, p.deliver(chunk))
		require.Equal(w, protocol.CodeOK, p.sayHello().Code)
		require.Equal(w, protocol.CodeOK, p.deliver(chunk))
		w.settle(10 * time.Second)
		w.requireEchoes(ids)
	})
}

// TestAPeerThatLeavesIsNotAskedBack has a peer say goodbye, and deliver what it runs after
// its membership has ended.
func TestAPeerThatLeavesIsNotAskedBack(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 1, func(p *fakePeer) { p.takes, p.silent = 2*time.Second, true })
		ids := w.submit(1)
		w.settle(time.Second)
		ack, ok := p.tell(&protocol.Goodbye{}).(*protocol.Ack)
		require.True(w, ok)
		require.Equal(w, protocol.CodeOK, ack.Code)
		w.settle(time.Minute)
		require.Empty(w, w.head.Peers()[0].Worker)
		require.Equal(w, protocol.CodeOK, p.deliver(p.unacknowledged()[0]))
		w.join("other", 1)
		w.settle(10 * time.Second)
		w.requireEchoes(ids)
		require.Equal(w, 1, w.runs())
	})
}
