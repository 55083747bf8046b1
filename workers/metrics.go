package workers

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/futura-run/futura/internal/series"
)

// NewCollector returns the metrics of a worker, counted since it was created:
// their names begin with futura_worker_, and the label worker is the worker's
// name, or "worker" if it has none. Attempts and their run times have the labels
// function and queue as well, for the first 100 pairs that the worker meets; all
// others are those of "(other)". A module is named by the last 12 characters of its
// content id. Waits have the label queue.
func NewCollector(w *Worker) prometheus.Collector {
	c := series.New[Stats]("futura_worker_", labelsOf(w.options.Name))
	count := c.Count
	count("claims_total", "Claim transactions that took futures.", func(s *Stats) int64 { return s.Claims })
	count("conflicts_total", "Claims that conflicted with another worker's.", func(s *Stats) int64 { return s.Conflicts })
	count("hinted_total", "Looks for work that another process hinted at.", func(s *Stats) int64 { return s.Hinted })
	count("cancelled_total", "Attempts that ended because their future was cancelled.",
		func(s *Stats) int64 { return s.Cancelled })
	count("lost_total", "Results and failures that came too late to count.", func(s *Stats) int64 { return s.Lost })
	count("rejected_total", "Futures that the worker could not run.", func(s *Stats) int64 { return s.Rejected })
	count("relinquished_total", "Futures given back unrun or interrupted.",
		func(s *Stats) int64 { return s.Relinquished })
	count("reaped_total", "Futures that its janitor took back from dead workers.",
		func(s *Stats) int64 { return s.Reaped })
	count("bundles_total", "Calls that ran futures of a lane together.", func(s *Stats) int64 { return s.Bundles })
	count("members_total", "Futures that ran together in such calls.", func(s *Stats) int64 { return s.Members })
	count("calls_saved_total", "Calls that were not made because futures ran together.",
		func(s *Stats) int64 { return s.Members - s.Bundles })
	c.Gauge("running", "Running functions.", func(s *Stats) int64 { return int64(s.Running) })
	c.Gauge("awaiting", "Running functions that wait for other futures, without a slot.",
		func(s *Stats) int64 { return int64(s.Awaiting) })
	c.Gauge("waiting", "Claimed futures that wait for a slot.",
		func(s *Stats) int64 { return int64(s.Waiting) })
	return c.Collector(w.Stats, w.tallies.realized, w.tallies.failed, w.tallies.runs, w.tallies.waits,
		w.waits, w.sizes)
}

func labelsOf(name string) prometheus.Labels {
	name = cmp.Or(name, "worker")
	return prometheus.Labels{"worker": name}
}

// secondsBuckets are the bounds of histograms of times.
func secondsBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
}

// newWaits returns the histogram of the time until futures are in a bundle.
func newWaits(name string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "futura_worker_member_wait_seconds", Help: "From the submit of a future until it was taken into a bundle.",
		ConstLabels: labelsOf(name), Buckets: secondsBuckets(),
	})
}

// newSizes returns the histogram of how many futures run together.
func newSizes(name string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "futura_worker_bundle_members", Help: "How many futures of a lane ran together in a call.",
		ConstLabels: labelsOf(name), Buckets: []float64{1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 99, 100},
	})
}
