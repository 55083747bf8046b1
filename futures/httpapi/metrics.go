package httpapi

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/futures"
)

// collectTime bounds the reads of a scrape.
const collectTime = 5 * time.Second

// clusterCollector reads the cluster's counters on each scrape.
type clusterCollector struct {
	counts                 *shared[counts]
	ready                  *shared[map[string]time.Time]
	client                 *futures.Client
	futures, workers, free *prometheus.Desc
	capacity, up           *prometheus.Desc
	died, clock, oldest    *prometheus.Desc
	limit, used, refused   *prometheus.Desc
}

func newClusterCollector(client *futures.Client, counts *shared[counts], oldest *shared[map[string]time.Time],
) *clusterCollector {
	labels := prometheus.Labels{"cluster": client.Cluster().Name()}
	desc := func(name, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, variable, labels)
	}
	return &clusterCollector{
		client: client, counts: counts, ready: oldest,
		oldest:   desc("futura_oldest_ready_seconds", "How long the oldest ready future of a queue has waited.", "queue"),
		futures:  desc("futura_futures", "Futures by queue and state.", "queue", "state"),
		workers:  desc("futura_workers", "Registered workers, and dead ones that are being reaped.", "alive"),
		capacity: desc("futura_slots", "Slots of all registered workers."),
		free:     desc("futura_slots_free", "Slots that are free, as of the workers' last heartbeats."),
		died:     desc("futura_workers_died_total", "Workers that this process declared dead."),
		clock:    desc("futura_clock_seconds", "The wall clock of this process at this scrape, since 1970."),
		up:       desc("futura_store_up", "1 if the store answered this scrape."),
		limit:    desc("futura_limit", "Limits of the cluster that are set.", "limit"),
		used:     desc("futura_limit_used", "What there is of what limits are for.", "limit"),
		refused:  desc("futura_limit_refused_total", "How often this process found no room within a limit.", "limit"),
	}
}

// Describe implements prometheus.Collector.
func (c *clusterCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.futures, c.workers, c.capacity, c.free, c.up, c.limit, c.used, c.refused,
		c.died, c.clock, c.oldest} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *clusterCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTime)
	defer cancel()
	now, up := c.client.Cluster().Now(), 1.0
	if err := c.collect(ctx, ch); err != nil {
		up = 0
	}
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
		ch <- prometheus.MustNewConstMetric(d, kind, v)
	}
	send(c.up, prometheus.GaugeValue, up)
	send(c.died, prometheus.CounterValue, float64(c.client.Cluster().Deaths()))
	send(c.clock, prometheus.GaugeValue, float64(now.UnixMilli())/1000)
}

func (c *clusterCollector) collect(ctx context.Context, ch chan<- prometheus.Metric) error {
	counts, err := c.counts.read(ctx)
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
	for _, n := range counts.queues {
		gauge(c.futures, float64(n.Futures), n.Queue, n.State)
	}
	oldest, err := c.ready.read(ctx)
	if err != nil {
		return err
	}
	now := c.client.Cluster().Now()
	for _, n := range counts.queues {
		if at, found := oldest[n.Queue]; found && n.State == layout.Ready.String() {
			gauge(c.oldest, max(0, now.Sub(at).Seconds()), n.Queue)
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
	return c.collectLimits(ctx, ch)
}

// collectLimits adds the limits of the cluster.
func (c *clusterCollector) collectLimits(ctx context.Context, ch chan<- prometheus.Metric) error {
	limits, used, err := c.client.Limits(ctx)
	if err != nil {
		return err
	}
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, limit quota.Limit) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, string(limit))
	}
	refused := quota.Of(c.client.Cluster()).Refused()
	for limit, most := range map[quota.Limit]float64{
		quota.LimitPending: float64(limits.Pending), quota.LimitRunning: float64(limits.Running),
		quota.LimitBytes: float64(limits.Bytes), quota.LimitRate: limits.PerSecond,
	} {
		if most > 0 {
			send(c.limit, prometheus.GaugeValue, most, limit)
		}
		send(c.refused, prometheus.CounterValue, float64(refused[limit]), limit)
	}
	send(c.used, prometheus.GaugeValue, float64(used.Pending), quota.LimitPending)
	send(c.used, prometheus.GaugeValue, float64(used.Running), quota.LimitRunning)
	if used.HasBytes {
		send(c.used, prometheus.GaugeValue, float64(used.Bytes), quota.LimitBytes)
	}
	return nil
}
