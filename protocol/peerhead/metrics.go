package peerhead

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/futura-run/futura/internal/series"
)

// counts are what peers did with items. See Peer.
type counts struct {
	done, failed, refused, disagreed, takenBack int64
}

// add adds what a peer did.
func (c *counts) add(p *peer) {
	c.done += p.done.Load()
	c.failed += p.failed.Load()
	c.refused += p.refused.Load()
	c.disagreed += p.disagreed.Load()
	c.takenBack += p.takenBack.Load()
}

// subtract takes away what a peer did.
func (c *counts) subtract(p *peer) {
	var its counts
	its.add(p)
	c.done -= its.done
	c.failed -= its.failed
	c.refused -= its.refused
	c.disagreed -= its.disagreed
	c.takenBack -= its.takenBack
}

// sums are the figures of all peers of a head.
type sums struct {
	counts
	known, connected, lost, slots, limit, orders, items int
}

// sum adds up the present peers, and what those did that were forgotten.
func (h *Head) sum() sums {
	h.mu.Lock()
	h.dropLost()
	all := sums{counts: h.gone, lost: len(h.lost)}
	present := make([]*peer, 0, len(h.peers))
	for _, p := range h.peers {
		all.add(p)
		present = append(present, p)
	}
	h.mu.Unlock()
	for _, p := range present {
		d := p.describe()
		all.known++
		if d.Connected {
			all.connected++
		}
		all.slots += d.Slots
		all.limit += d.Limit
		all.orders += d.Orders
		all.items += d.Items
	}
	return all
}

// NewCollector returns the metrics of a head's peers, all of them together, counted since
// the head was made. Their names begin with futura_peers, and none has a label.
func NewCollector(h *Head) prometheus.Collector {
	c := series.New[sums]("futura_peers", nil)
	gauge := func(metric, help string, value func(*sums) int) {
		c.Gauge(metric, help, func(s *sums) int64 { return int64(value(s)) })
	}
	gauge("", "Peers that the head knows.", func(s *sums) int { return s.known })
	gauge("_connected", "Peers that are connected.", func(s *sums) int { return s.connected })
	gauge("_lost", "Workers that went, and are still listed.", func(s *sums) int { return s.lost })
	gauge("_slots", "Items that the peers take at a time.", func(s *sums) int { return s.slots })
	gauge("_limit", "Items that the peers are given at a time, by their scores.", func(s *sums) int { return s.limit })
	gauge("_orders", "Orders that peers have.", func(s *sums) int { return s.orders })
	gauge("_items", "Items of those orders that have not ended.", func(s *sums) int { return s.items })
	c.Count("_done_total", "Items that peers ended with a result.", func(s *sums) int64 { return s.done })
	c.Count("_failed_total", "Items that failed on peers.", func(s *sums) int64 { return s.failed })
	c.Count("_refused_total", "Outcomes of peers that changed nothing.", func(s *sums) int64 { return s.refused })
	c.Count("_disagreed_total", "Items about which a peer said something else than others.",
		func(s *sums) int64 { return s.disagreed })
	c.Count("_taken_back_total", "Items that peers had not begun while others were idle, which got them.",
		func(s *sums) int64 { return s.takenBack })
	return c.Collector(h.sum)
}
