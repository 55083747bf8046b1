package jobqueue

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// tally counts what a stage has done in this process.
type tally struct{ done, failed, parked atomic.Int64 }

// collector serves what a stage is doing as metrics.
type collector struct {
	status func() Status
	atWork func() bool
	tally  *tally

	working, processed, head, lag, running, waiting, ended *prometheus.Desc
	done, failed, parked                                   *prometheus.Desc
}

// NewCollector returns the metrics of a stage in this process: their names begin with
// futura_stage_, the labels are queue and consumer. A process that stands by has the
// counters alone. What all processes have done is in the metrics of a server:
// futura_jobs_*.
func NewCollector[J any](s *Stage[J]) prometheus.Collector {
	labels := prometheus.Labels{"queue": s.consumer.Queue, "consumer": s.consumer.Name}
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("futura_stage_"+name, help, nil, labels)
	}
	return &collector{
		status: s.Status, atWork: s.AtWork, tally: &s.tally,
		working:   desc("at_work", "1 if this process is the one that processes the jobs, 0 if it stands by."),
		processed: desc("processed", "Index up to which all jobs are done or parked."),
		head:      desc("head", "Index of the last job that was seen."),
		lag:       desc("lag", "Jobs that were seen and are not done."),
		running:   desc("running", "Jobs that run."),
		waiting:   desc("waiting", "Jobs that failed and wait for their next attempt."),
		ended:     desc("ended", "Jobs that have ended behind one that has not."),
		done:      desc("done_total", "Jobs whose effects were committed."),
		failed:    desc("failed_total", "Attempts that failed."),
		parked:    desc("parked_total", "Jobs that were put aside."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.working, c.processed, c.head, c.lag, c.running, c.waiting, c.ended, c.done,
		c.failed, c.parked} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
		ch <- prometheus.MustNewConstMetric(d, kind, v)
	}
	send(c.done, prometheus.CounterValue, float64(c.tally.done.Load()))
	send(c.failed, prometheus.CounterValue, float64(c.tally.failed.Load()))
	send(c.parked, prometheus.CounterValue, float64(c.tally.parked.Load()))
	if !c.atWork() {
		send(c.working, prometheus.GaugeValue, 0)
		return
	}
	s := c.status()
	send(c.working, prometheus.GaugeValue, 1)
	send(c.processed, prometheus.GaugeValue, float64(s.Processed))
	send(c.head, prometheus.GaugeValue, float64(s.Head))
	send(c.lag, prometheus.GaugeValue, float64(max(s.Head, s.Processed)-s.Processed))
	send(c.running, prometheus.GaugeValue, float64(s.Processing))
	send(c.waiting, prometheus.GaugeValue, float64(s.Waiting))
	send(c.ended, prometheus.GaugeValue, float64(s.Ended))
}
