package peerworker

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/futura-run/futura/internal/series"
	"github.com/futura-run/futura/workers"
)

// counts are counters since the worker was made.
type counts struct {
	greeted, chunks, items, rejected, delivered, refused, garbage, fetched, fetchedBytes, givenUp atomic.Int64
}

// Stats say what a worker has done since it was made, and what it has now.
type Stats struct {
	// Heads is how many heads have taken the worker and are connected.
	Heads int `json:"heads"`
	// Chunks and Items are those that the worker has, also of results that no head has
	// acknowledged, and Bytes those of their arguments and results.
	Chunks int   `json:"chunks"`
	Items  int   `json:"items"`
	Bytes  int64 `json:"bytes"`
	// ByHead says what each head has, in the order of their ids.
	ByHead []HeadUse `json:"by_head,omitempty"`

	ChunksTaken  int64 `json:"chunks_taken"`
	ItemsTaken   int64 `json:"items_taken"`
	Rejected     int64 `json:"rejected"`      // orders that were not taken
	Delivered    int64 `json:"delivered"`     // outcomes that heads have acknowledged
	GivenUp      int64 `json:"given_up"`      // items that heads wanted back, unbegun
	Resent       int64 `json:"resent"`        // messages with outcomes that were not acknowledged
	Garbage      int64 `json:"garbage"`       // messages that could not be read
	Modules      int64 `json:"modules"`       // modules that were fetched
	ModuleBytes  int64 `json:"module_bytes"`  // bytes of modules that were fetched
	Hellos       int64 `json:"hellos"`        // how often a head has taken the worker
	Running      int   `json:"running"`       // functions that run
	FunctionsRan int64 `json:"functions_ran"` // calls that ended with a result
}

// Stats returns the counters of the worker.
func (w *Worker) Stats() Stats {
	n := &w.counts
	s := Stats{
		ChunksTaken: n.chunks.Load(), ItemsTaken: n.items.Load(), Rejected: n.rejected.Load(),
		Delivered: n.delivered.Load(), Resent: n.refused.Load(), Garbage: n.garbage.Load(), Modules: n.fetched.Load(),
		ModuleBytes: n.fetchedBytes.Load(), Hellos: n.greeted.Load(), GivenUp: n.givenUp.Load(),
	}
	w.mu.Lock()
	s.Chunks, s.Items, s.Bytes, s.ByHead = w.has.chunks, w.has.items, w.has.bytes, w.headUses()
	w.mu.Unlock()
	s.Heads = len(w.liveLinks())
	if local := w.local(); local != nil {
		l := local.Stats()
		s.Running, s.FunctionsRan = l.Running, l.Ran
	}
	return s
}

// local is the worker of the own cluster, nil before it runs.
func (w *Worker) local() *workers.Worker {
	select {
	case <-w.ready:
		return w.node.worker
	default:
		return nil
	}
}

// collector exports Stats, and of each head what it has.
type collector struct {
	worker *Worker
	all    *series.Set[Stats]
	byHead *series.Set[HeadUse]
	calls  prometheus.Collector // nil for a worker that was not ready
}

// NewCollector returns the metrics of a worker, whose names begin with
// futura_peerworker_. Of a worker that is Ready, the calls of functions are among them, as
// workers.NewCollector has them.
func NewCollector(w *Worker) prometheus.Collector {
	all := series.New[Stats]("futura_peerworker_", nil)
	all.Gauge("heads", "Heads that have taken the worker and are connected.",
		func(s *Stats) int64 { return int64(s.Heads) })
	all.Gauge("chunks", "Chunks that the worker has.", func(s *Stats) int64 { return int64(s.Chunks) })
	all.Gauge("items", "Items of these chunks.", func(s *Stats) int64 { return int64(s.Items) })
	all.Gauge("bytes", "Bytes of arguments and results of these chunks.",
		func(s *Stats) int64 { return s.Bytes })
	all.Count("items_taken_total", "Items that were ordered.", func(s *Stats) int64 { return s.ItemsTaken })
	all.Count("rejected_total", "Orders that were not taken.", func(s *Stats) int64 { return s.Rejected })
	all.Count("delivered_total", "Outcomes that heads have acknowledged.",
		func(s *Stats) int64 { return s.Delivered })
	all.Count("given_up_total", "Items that heads wanted back before they had begun.",
		func(s *Stats) int64 { return s.GivenUp })
	all.Count("resent_total", "Messages with outcomes that were not acknowledged.",
		func(s *Stats) int64 { return s.Resent })
	all.Count("garbage_total", "Messages that could not be read.", func(s *Stats) int64 { return s.Garbage })
	all.Count("module_bytes_total", "Bytes of modules that were fetched.",
		func(s *Stats) int64 { return s.ModuleBytes })
	c := &collector{worker: w, all: all, byHead: seriesByHead()}
	if local := w.local(); local != nil {
		c.calls = workers.NewCollector(local)
	}
	return c
}

// seriesByHead are what each head has. Heads that the worker does not name are one.
func seriesByHead() *series.Set[HeadUse] {
	all := series.New[HeadUse]("futura_peerworker_head_", nil, "head")
	all.Gauge("chunks", "Chunks of a head that the worker has.", func(u *HeadUse) int64 { return int64(u.Chunks) })
	all.Gauge("items", "Items of these chunks.", func(u *HeadUse) int64 { return int64(u.Items) })
	all.Gauge("bytes", "Bytes of arguments and results of these chunks.",
		func(u *HeadUse) int64 { return u.Bytes })
	all.Count("refused_total", "Orders of a head that had no room beside what it and others have.",
		func(u *HeadUse) int64 { return u.Refused })
	return all
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	c.all.Describe(to)
	c.byHead.Describe(to)
	if c.calls != nil {
		c.calls.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	s := c.worker.Stats()
	c.all.Send(to, &s)
	for i := range s.ByHead {
		c.byHead.Send(to, &s.ByHead[i], s.ByHead[i].Head)
	}
	if c.calls != nil {
		c.calls.Collect(to)
	}
}
