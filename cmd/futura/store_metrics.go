package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/futura-run/futura/fdbmodel/kv/embedded"
)

// storeStats is what an embedded store reports about itself.
type storeStats interface{ Stats() embedded.Stats }

// storeCollector serves the figures of an embedded store as metrics.
type storeCollector struct {
	store  storeStats
	series []storeSeries
}

type storeSeries struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*embedded.Stats) float64
}

func newStoreCollector(store storeStats) prometheus.Collector {
	c := &storeCollector{store: store}
	add := func(kind prometheus.ValueType, name, help string, value func(*embedded.Stats) float64) {
		c.series = append(c.series, storeSeries{prometheus.NewDesc("futura_store_"+name, help, nil, nil), kind, value})
	}
	count, gauge := prometheus.CounterValue, prometheus.GaugeValue
	add(count, "commits_total", "Commits.", func(s *embedded.Stats) float64 { return float64(s.Commits) })
	add(count, "conflicts_total", "Commits that conflicted with another.",
		func(s *embedded.Stats) float64 { return float64(s.Conflicts) })
	add(count, "syncs_total", "Syncs of the log.", func(s *embedded.Stats) float64 { return float64(s.Syncs) })
	add(count, "checkpoints_total", "Checkpoints.", func(s *embedded.Stats) float64 { return float64(s.Checkpoints) })
	add(gauge, "sync_seconds", "Median duration of the last syncs.",
		func(s *embedded.Stats) float64 { return s.SyncMedian.Seconds() })
	add(gauge, "keys", "Keys.", func(s *embedded.Stats) float64 { return float64(s.Keys) })
	add(gauge, "bytes", "Bytes of all keys and values.", func(s *embedded.Stats) float64 { return float64(s.Bytes) })
	add(gauge, "memory_bytes", "Estimated memory of all keys and values.",
		func(s *embedded.Stats) float64 { return float64(s.Memory) })
	add(gauge, "log_bytes", "Bytes of the log.", func(s *embedded.Stats) float64 { return float64(s.LogBytes) })
	add(gauge, "watches", "Open watches.", func(s *embedded.Stats) float64 { return float64(s.Watches) })
	return c
}

// Describe implements prometheus.Collector.
func (c *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, s := range c.series {
		ch <- s.desc
	}
}

// Collect implements prometheus.Collector.
func (c *storeCollector) Collect(ch chan<- prometheus.Metric) {
	stats := c.store.Stats()
	for _, s := range c.series {
		ch <- prometheus.MustNewConstMetric(s.desc, s.kind, s.value(&stats))
	}
}
