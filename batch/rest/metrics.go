package rest

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/futura-run/futura/futures/httpapi"
)

// metrics count the requests of this package's routes.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	running  prometheus.Gauge
}

func newMetrics() *metrics {
	return &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "futura_rest_requests_total", Help: "Requests of the batch API that were answered.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "futura_rest_request_seconds", Help: "How long requests took, waiting and streaming included.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 15, 60},
		}, []string{"route"}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "futura_rest_requests_running", Help: "Requests of the batch API that are being answered.",
		}),
	}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.running} {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.running} {
		c.Collect(ch)
	}
}

// count counts a route's requests.
func (m *metrics) count(route string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		m.running.Inc()
		start := time.Now()
		rec := &httpapi.Recorder{ResponseWriter: w}
		defer func() {
			m.running.Dec()
			m.requests.WithLabelValues(route, strconv.Itoa(rec.Status())).Inc()
			m.seconds.WithLabelValues(route).Observe(time.Since(start).Seconds())
		}()
		next(rec, r)
	}
}

// metricsOnly serves /metrics, and a problem elsewhere.
func metricsOnly(all []prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(all...)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
	}))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		httpapi.WriteProblem(w, httpapi.NewProblem(http.StatusNotFound, "no_such_path", nil,
			"nothing is at %.200q: /openapi.json describes the API", r.URL.Path))
	})
	return mux
}
