package httpapi

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/futures"
)

// maxMeasuredLogs is how many logs of jobs are in the metrics, the first by their names.
const maxMeasuredLogs = 100

// jobCollector reads the logs of jobs on each scrape.
type jobCollector struct {
	client                                      *futures.Client
	head, processed, lag, parked, held, failing *prometheus.Desc
}

func newJobCollector(client *futures.Client) *jobCollector {
	labels := prometheus.Labels{"cluster": client.Cluster().Name()}
	desc := func(name, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc("futura_jobs_"+name, help, variable, labels)
	}
	return &jobCollector{
		client: client,
		head:   desc("head", "Index of the last job of a log.", "queue"),
		processed: desc("processed", "Index up to which a consumer has done or parked all jobs; its rate is the jobs per "+
			"second.", "queue", "consumer"),
		lag:     desc("lag", "Jobs of the log that a consumer has not done.", "queue", "consumer"),
		parked:  desc("parked", "Jobs that a consumer has put aside, counted up to 1,000.", "queue", "consumer"),
		held:    desc("held", "1 if a process holds the lease of a consumer; it may have died.", "queue", "consumer"),
		failing: desc("failing_attempts", "How often the job failed that a consumer tries again.", "queue", "consumer"),
	}
}

// Describe implements prometheus.Collector.
func (c *jobCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.head, c.processed, c.lag, c.parked, c.held, c.failing} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. There are no metrics while the store does not
// answer.
func (c *jobCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTime)
	defer cancel()
	queues, err := joblog.Of(c.client.Cluster()).Page(ctx, "", maxMeasuredLogs)
	if err != nil {
		return
	}
	for i := range queues {
		c.measure(&queues[i], func(d *prometheus.Desc, v int64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
		})
	}
}

func (c *jobCollector) measure(q *joblog.Log, gauge func(*prometheus.Desc, int64, ...string)) {
	if q.Last > 0 {
		gauge(c.head, q.Last, q.Name)
	}
	for i := range q.Consumers {
		s := &q.Consumers[i]
		if s.Unreadable {
			continue
		}
		gauge(c.processed, s.Progress.Index, q.Name, s.Name)
		if q.Last > 0 {
			gauge(c.lag, q.Last-s.Progress.Index, q.Name, s.Name)
		}
		gauge(c.parked, int64(s.Parked), q.Name, s.Name)
		held, attempts := int64(0), int64(0)
		if s.Lease != nil {
			held, attempts = 1, s.Lease.Attempts
		}
		gauge(c.held, held, q.Name, s.Name)
		gauge(c.failing, attempts, q.Name, s.Name)
	}
}
