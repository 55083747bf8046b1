// Package series serves the figures of a struct as metrics of Prometheus.
package series

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"
)

// Set is metrics whose values are read from the figures S.
type Set[S any] struct {
	prefix   string
	labels   prometheus.Labels
	variable []string
	all      []one[S]
}

type one[S any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*S) float64
}

// New returns a set without metrics. The names of its metrics begin with prefix, they have the
// labels, and are sent with a value for each label of variable.
func New[S any](prefix string, labels prometheus.Labels, variable ...string) *Set[S] {
	return &Set[S]{prefix: prefix, labels: labels, variable: variable}
}

// Add adds a metric, which has more labels unless these are nil.
func (s *Set[S]) Add(kind prometheus.ValueType, name, help string, more prometheus.Labels, value func(*S) float64) {
	labels := maps.Clone(s.labels)
	if labels == nil {
		labels = prometheus.Labels{}
	}
	maps.Copy(labels, more)
	s.all = append(s.all, one[S]{prometheus.NewDesc(s.prefix+name, help, s.variable, labels), kind, value})
}

// Gauge adds what there is of something.
func (s *Set[S]) Gauge(name, help string, value func(*S) int64) {
	s.Add(prometheus.GaugeValue, name, help, nil, func(from *S) float64 { return float64(value(from)) })
}

// Count adds how often something has happened.
func (s *Set[S]) Count(name, help string, value func(*S) int64) { s.CountOf(nil, name, help, value) }

// CountOf is Count of what labels tell from others of the name.
func (s *Set[S]) CountOf(labels prometheus.Labels, name, help string, value func(*S) int64) {
	s.Add(prometheus.CounterValue, name, help, labels, func(from *S) float64 { return float64(value(from)) })
}

// Describe sends what the metrics are.
func (s *Set[S]) Describe(to chan<- *prometheus.Desc) {
	for _, m := range s.all {
		to <- m.desc
	}
}

// Send sends the metrics of these figures, with the values of the variable labels.
func (s *Set[S]) Send(to chan<- prometheus.Metric, figures *S, variable ...string) {
	for _, m := range s.all {
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(figures), variable...)
	}
}

// Collector returns a collector of the set, which reads the figures for each scrape, and of more.
func (s *Set[S]) Collector(read func() S, more ...prometheus.Collector) prometheus.Collector {
	return &collector[S]{s, read, more}
}

type collector[S any] struct {
	set  *Set[S]
	read func() S
	more []prometheus.Collector
}

// Describe implements prometheus.Collector.
func (c *collector[S]) Describe(to chan<- *prometheus.Desc) {
	c.set.Describe(to)
	for _, m := range c.more {
		m.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (c *collector[S]) Collect(to chan<- prometheus.Metric) {
	figures := c.read()
	c.set.Send(to, &figures)
	for _, m := range c.more {
		m.Collect(to)
	}
}
