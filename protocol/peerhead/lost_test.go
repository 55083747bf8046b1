package peerhead_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/peerhead"
)

// metricOf is the value of a metric of the head.
func (w *world) metricOf(name string) float64 {
	w.Helper()
	registry := prometheus.NewRegistry()
	require.NoError(w, registry.Register(peerhead.NewCollector(w.head)))
	families, err := registry.Gather()
	require.NoError(w, err)
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	require.FailNow(w, "no such metric", name)
	return 0
}

// TestALostPeerIsRemembered has a peer do something, go, come back, and go for good.
func TestALostPeerIsRemembered(t *testing.T) {
	inWorld(t, peerhead.Options{KeepLost: 30 * time.Minute}, func(w *world) {
		p := w.join("p", 4)
		ids := w.submit(4)
		w.settle(time.Second)
		w.requireEchoes(ids)
		require.Empty(w, w.head.Lost())
		went := w.cluster.Now()
		p.setAway(true)
		w.settle(time.Minute)
		require.Empty(w, w.head.Peers())
		lost := w.head.Lost()
		require.Len(w, lost, 1)
		require.Equal(w, p.id, lost[0].ID)
		require.EqualValues(w, 4, lost[0].Done)
		require.Equal(w, 4, lost[0].Slots)
		require.WithinDuration(w, went, lost[0].LostAt, time.Second)
		require.Contains(w, lost[0].Reason, "away")
		require.False(w, lost[0].Connected || lost[0].Left)
		require.EqualValues(w, 1, w.metricOf("futura_peers_lost"))
		require.EqualValues(w, 4, w.metricOf("futura_peers_done_total"))

		p.setAway(false)
		require.Equal(w, protocol.CodeOK, p.sayHello().Code)
		more := w.submit(2)
		w.settle(time.Second)
		w.requireEchoes(more)
		require.Empty(w, w.head.Lost())
		require.EqualValues(w, 6, w.head.Peers()[0].Done, "with what it did before")
		require.EqualValues(w, 6, w.metricOf("futura_peers_done_total"))

		require.Equal(w, protocol.CodeOK, p.tell(&protocol.Goodbye{}).(*protocol.Ack).Code)
		p.setAway(true)
		w.settle(20 * time.Minute)
		require.Len(w, w.head.Lost(), 1)
		require.True(w, w.head.Lost()[0].Left)
		w.settle(11 * time.Minute)
		require.Empty(w, w.head.Lost())
		require.EqualValues(w, 6, w.metricOf("futura_peers_done_total"))
	})
}

// TestAPeerThatComesBackLaterBeginsAnew has nobody look at lost peers meanwhile.
func TestAPeerThatComesBackLaterBeginsAnew(t *testing.T) {
	inWorld(t, peerhead.Options{KeepLost: 30 * time.Minute}, func(w *world) {
		p := w.join("p", 4)
		ids := w.submit(4)
		w.settle(time.Second)
		w.requireEchoes(ids)
		p.setAway(true)
		w.settle(time.Hour)
		p.setAway(false)
		require.Equal(w, protocol.CodeOK, p.sayHello().Code)
		require.Zero(w, w.head.Peers()[0].Done)
		require.EqualValues(w, 4, w.metricOf("futura_peers_done_total"))
	})
}

// TestStrangersPushNoLostPeerOut has any number of peers come and go after one that did something.
func TestStrangersPushNoLostPeerOut(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 4)
		ids := w.submit(4)
		w.settle(time.Second)
		w.requireEchoes(ids)
		p.setAway(true)
		w.settle(time.Minute)
		for round := range 3 {
			var all []*fakePeer
			for i := range 200 {
				all = append(all, w.join(fmt.Sprintf("stranger-%d-%d", round, i), 1))
			}
			for _, s := range all {
				s.setAway(true)
			}
			w.settle(time.Minute)
		}
		lost := w.head.Lost()
		require.Len(w, lost, 500)
		found := false
		for _, l := range lost {
			found = found || l.ID == p.id
		}
		require.True(w, found)
	})
}

// TestASilentPeerIsDropped has a peer that is here say nothing of its work, and then greet again.
func TestASilentPeerIsDropped(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		p := w.join("p", 4, func(p *fakePeer) { p.silent = true })
		ids := w.submit(1)
		w.settle(time.Minute)
		is := w.head.Peers()[0]
		require.True(w, is.Connected)
		require.Empty(w, is.Worker)
		require.Contains(w, is.Reason, "silent")
		require.Empty(w, w.head.Lost())
		p.silent = false
		require.Equal(w, protocol.CodeOK, p.sayHello().Code)
		w.settle(time.Minute)
		w.requireEchoes(ids)
		is = w.head.Peers()[0]
		require.NotEmpty(w, is.Worker)
		require.Empty(w, is.Reason)
	})
}
