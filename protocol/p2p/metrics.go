package p2p

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/futura-run/futura/internal/series"
)

// NewCollector returns the metrics of a host, counted since it was opened. Their names
// begin with futura_p2p_.
func NewCollector(h *Host) prometheus.Collector {
	c := series.New[Stats]("futura_p2p_", nil)
	count := c.Count
	refused := func(reason string, value func(*Stats) int64) {
		c.CountOf(prometheus.Labels{"reason": reason}, "streams_refused_total", "Streams of peers that were reset.", value)
	}
	dropped := func(reason string, value func(*Stats) int64) {
		c.CountOf(prometheus.Labels{"reason": reason}, "published_dropped_total",
			"Published messages that were not taken.", value)
	}
	c.Gauge("peers", "Connected peers.", func(s *Stats) int64 { return int64(s.Peers) })
	count("sent_total", "Messages handed to peers without an answer.", func(s *Stats) int64 { return s.Sent })
	count("calls_total", "Messages handed to peers and answered.", func(s *Stats) int64 { return s.Calls })
	count("received_total", "Messages of peers without an answer.", func(s *Stats) int64 { return s.Received })
	count("answered_total", "Messages of peers that were answered.", func(s *Stats) int64 { return s.Answered })
	refused("large", func(s *Stats) int64 { return s.RefusedLarge })
	refused("slow", func(s *Stats) int64 { return s.RefusedSlow })
	refused("busy", func(s *Stats) int64 { return s.RefusedBusy })
	refused("other", func(s *Stats) int64 { return s.RefusedOther })
	count("published_total", "Messages published to topics.", func(s *Stats) int64 { return s.Published })
	count("heard_total", "Published messages of others.", func(s *Stats) int64 { return s.Heard })
	dropped("memory", func(s *Stats) int64 { return s.DroppedGossip })
	dropped("size", func(s *Stats) int64 { return s.LargeGossip })
	dropped("rate", func(s *Stats) int64 { return s.FastGossip })
	count("dial_failures_total", "Failed attempts to reach a boot node.", func(s *Stats) int64 { return s.DialFailures })
	count("blobs_served_total", "Blobs that peers got.", func(s *Stats) int64 { return s.BlobsServed })
	count("blobs_fetched_total", "Blobs that came from peers.", func(s *Stats) int64 { return s.BlobsFetched })
	count("blob_bytes_served_total", "Bytes of blobs that peers got.", func(s *Stats) int64 { return s.BytesServed })
	count("blob_bytes_fetched_total", "Bytes of blobs that came.", func(s *Stats) int64 { return s.BytesFetched })
	count("blob_pauses_total", "Pauses of fetches after a cut.", func(s *Stats) int64 { return s.BlobCuts })
	return c.Collector(h.Stats)
}
