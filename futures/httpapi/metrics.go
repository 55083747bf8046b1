package httpapi

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
)

// collectTime bounds the reads of a scrape.
const collectTime = 5 * time.Second

// clusterCollector reads the cluster's counters on each scrape.
type clusterCollector struct {
	client                 *futures.Client
	futures, workers, free *prometheus.Desc
	capacity, up           *prometheus.Desc
}

func newClusterCollector(client *futures.Client) *clusterCollector {
	labels := prometheus.Labels{"cluster": client.Cluster().Name()}
	desc := func(name, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, variable, labels)
	}
	return &clusterCollector{
		client:   client,
		futures:  desc("futura_futures", "Futures by queue and state.", "queue", "state"),
		workers:  desc("futura_workers", "Registered workers, and dead ones that are being reaped.", "alive"),
		capacity: desc("futura_slots", "Slots of all registered workers."),
		free:     desc("futura_slots_free", "Slots that are free, as of the workers' last heartbeats."),
		up:       desc("futura_store_up", "1 if the store answered this scrape."),
	}
}

// Describe implements prometheus.Collector.
func (c *clusterCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.futures, c.workers, c.capacity, c.free, c.up} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *clusterCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTime)
	defer cancel()
	up := 1.0
	if err := c.collect(ctx, ch); err != nil {
		up = 0
	}
	ch <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, up)
}

func (c *clusterCollector) collect(ctx context.Context, ch chan<- prometheus.Metric) error {
	counts, err := c.client.Counts(ctx)
	if err != nil {
		return err
	}
	members, err := c.client.Cluster().Workers(ctx)
	if err != nil {
		return err
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for queue, states := range largestQueues(counts) {
		for state, n := range states {
			gauge(c.futures, float64(n), queue, state.String())
		}
	}
	var alive, dead, slots, free float64
	for i := range members {
		if !members[i].Alive {
			dead++
			continue
		}
		alive++
		slots += float64(members[i].Capacity.Slots)
		free += float64(members[i].Heartbeat.Free.Slots)
	}
	gauge(c.workers, alive, "true")
	gauge(c.workers, dead, "false")
	gauge(c.capacity, slots)
	gauge(c.free, free)
	return nil
}

const (
	// maxQueues is the maximum number of queues with metrics of their own.
	maxQueues = 100
	// otherQueues is the label of all other queues. No queue has this name.
	otherQueues = "(other)"
)

// largestQueues adds up the counters of each queue, whose groups are many and
// short-lived. All but the queues with the most futures are added up as one.
func largestQueues(counts layout.Counts) map[string]map[layout.State]int64 {
	sums, totals := map[string]map[layout.State]int64{}, map[string]int64{}
	add := func(queue string, state layout.State, n int64) {
		if sums[queue] == nil {
			sums[queue] = map[layout.State]int64{}
		}
		sums[queue][state] += n
	}
	for k, n := range counts {
		add(k.Queue, k.State, n)
		totals[k.Queue] += n
	}
	names := slices.SortedFunc(maps.Keys(totals), func(a, b string) int {
		return cmp.Or(cmp.Compare(totals[b], totals[a]), cmp.Compare(a, b))
	})
	for _, queue := range names[min(len(names), maxQueues):] {
		for state, n := range sums[queue] {
			add(otherQueues, state, n)
		}
		delete(sums, queue)
	}
	return sums
}
