package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/internal/series"
)

// storeStats is what an embedded store reports about itself.
type storeStats interface{ Stats() embedded.Stats }

func newStoreCollector(store storeStats) prometheus.Collector {
	c := series.New[embedded.Stats]("futura_store_", nil)
	c.Count("commits_total", "Commits.", func(s *embedded.Stats) int64 { return int64(s.Commits) })
	c.Count("conflicts_total", "Commits that conflicted with another.",
		func(s *embedded.Stats) int64 { return int64(s.Conflicts) })
	c.Count("syncs_total", "Syncs of the log.", func(s *embedded.Stats) int64 { return int64(s.Syncs) })
	c.Count("checkpoints_total", "Checkpoints.", func(s *embedded.Stats) int64 { return s.Checkpoints })
	c.Add(prometheus.GaugeValue, "sync_seconds", "Median duration of the last syncs.", nil,
		func(s *embedded.Stats) float64 { return s.SyncMedian.Seconds() })
	c.Gauge("keys", "Keys.", func(s *embedded.Stats) int64 { return s.Keys })
	c.Gauge("cold_keys", "Keys that lie on disk alone.", func(s *embedded.Stats) int64 { return s.Cold })
	c.Gauge("bytes", "Bytes of all keys and values.", func(s *embedded.Stats) int64 { return s.Bytes })
	c.Gauge("memory_bytes", "Estimated memory of all keys and values.",
		func(s *embedded.Stats) int64 { return s.Memory })
	c.Gauge("log_bytes", "Bytes of the log.", func(s *embedded.Stats) int64 { return s.LogBytes })
	c.Gauge("disk_bytes", "Size of the file system that has the store, 0 where this process has no store open.",
		func(s *embedded.Stats) int64 { return s.Disk })
	c.Gauge("disk_free_bytes", "Bytes of that file system that are free.",
		func(s *embedded.Stats) int64 { return s.DiskFree })
	c.Gauge("watches", "Open watches.", func(s *embedded.Stats) int64 { return int64(s.Watches) })
	return c.Collector(store.Stats)
}
