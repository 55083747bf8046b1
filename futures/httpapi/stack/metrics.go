package stack

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are the metrics that /metrics serves.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	running  prometheus.Gauge
}

func newMetrics(more []prometheus.Collector) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "futura_http_requests_total", Help: "Answered requests.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "futura_http_request_seconds", Help: "How long requests took, waiting and streaming included.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 15, 60},
		}, []string{"route"}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "futura_http_requests_running", Help: "Requests that are being answered.",
		}),
	}
	m.registry.MustRegister(m.requests, m.seconds, m.running, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.registry.MustRegister(more...)
	return m
}

// watch exports the resources that requests hold.
func (m *metrics) watch(all ...*memory) {
	gauge := func(name, help string, value func(of *memory) int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() (sum float64) {
			for _, of := range all {
				of.mu.Lock()
				sum += float64(value(of))
				of.mu.Unlock()
			}
			return sum
		})
	}
	m.registry.MustRegister(
		gauge("futura_http_held_bytes", "Bytes that requests hold of their budget.",
			func(of *memory) int64 { return of.held }),
		gauge("futura_http_streams", "Open streams of events.", func(of *memory) int64 { return int64(of.streams) }))
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// count counts a request by its matched pattern, which keeps the number of
// labels small.
func (m *metrics) count(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}
