package peerhead_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerhead"
)

// TestMetricsOfPeers counts what two peers did, one of which is forgotten.
func TestMetricsOfPeers(t *testing.T) {
	inWorld(t, peerhead.Options{}, func(w *world) {
		registry := prometheus.NewPedanticRegistry()
		require.NoError(w, registry.Register(peerhead.NewCollector(w.head)))
		p := w.join("p", 4, func(p *fakePeer) {
			p.run = func(o *protocol.WorkOrderBatch, i int) protocol.Outcome {
				if string(o.Items[i].Args) == "0" {
					return protocol.Outcome{Index: i, Code: protocol.CodeError, ExitCode: 1}
				}
				return echo(o, i)
			}
		})
		w.submit(3, func(s *layout.Spec) { s.MaxRetries = 0 })
		w.settle(time.Minute)
		p.tell(&protocol.WorkOrderBatchResponse{RequestID: "a", ChunkID: "a", OrderMAC: "forged",
			Items:    []protocol.OrderItem{{ID: "01995b4e-6f3a-7c1e-9d2b-0123456789ab"}},
			Outcomes: []protocol.Outcome{{Code: protocol.CodeOK}}})
		p.setAway(true)
		w.settle(time.Minute)
		require.Empty(w, w.head.Peers())
		w.join("q", 8, func(p *fakePeer) { p.silent = true })
		w.submit(5)
		w.settle(time.Second)
		w.head.Observe(p2p.Peer{ID: "q", Futura: true})
		got := map[string]float64{}
		families, err := registry.Gather()
		require.NoError(w, err)
		for _, f := range families {
			m := f.GetMetric()[0]
			got[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
		require.Equal(w, map[string]float64{
			"futura_peers": 1, "futura_peers_connected": 0, "futura_peers_slots": 8, "futura_peers_items": 5,
			"futura_peers_limit": 8, "futura_peers_lost": 1, "futura_peers_taken_back_total": 0,
			"futura_peers_done_total": 2, "futura_peers_failed_total": 1, "futura_peers_refused_total": 1,
			"futura_peers_disagreed_total": 0, "futura_peers_orders": got["futura_peers_orders"],
		}, got)
		require.NotZero(w, got["futura_peers_orders"])
	})
}
