package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
)

// metrics are what /metrics serves.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	running  prometheus.Gauge
}

func newMetrics(s *server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "futura_http_requests_total", Help: "Requests that were answered.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "futura_http_request_seconds", Help: "How long requests took, waiting included.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 15, 60},
		}, []string{"route"}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "futura_http_requests_running", Help: "Requests that are being answered.",
		}),
	}
	m.registry.MustRegister(m.requests, m.seconds, m.running, newClusterCollector(s.client),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.registry.MustRegister(s.options.Collectors...)
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// count routes requests and counts them by the pattern that they matched, of
// which there are few.
func (m *metrics) count(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.running.Inc()
		defer m.running.Dec()
		start := time.Now()
		name, handler := route(mux, r)
		if name = strings.Replace(name, actionMark, ":", 1); name == "" {
			name = "none"
		}
		rec := &Recorder{ResponseWriter: w}
		handler.ServeHTTP(rec, r)
		m.requests.WithLabelValues(name, strconv.Itoa(rec.status)).Inc()
		m.seconds.WithLabelValues(name).Observe(time.Since(start).Seconds())
	})
}

// collectTime bounds what a scrape reads from the store.
const collectTime = 5 * time.Second

// clusterCollector reads the cluster's counters when it is asked.
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
		workers:  desc("futura_workers", "Workers that live, and dead ones that are being cleared away.", "alive"),
		capacity: desc("futura_slots", "Slots of all workers that live."),
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
	// Owners are many and short-lived: a queue's are added up.
	sums := layout.Counts{}
	for k, n := range counts {
		sums[layout.CountKey{Queue: k.Queue, State: k.State}] += n
	}
	for k, n := range sums {
		gauge(c.futures, float64(n), k.Queue, k.State.String())
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
