package workers

import (
	"cmp"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/futura-run/futura/fdbmodel/layout"
)

const (
	// maxPairs is how many pairs of a function and a queue a worker has in its metrics, the first
	// that it meets.
	maxPairs = 100
	// otherPairs is the function and the queue of all others. Nothing else has this name.
	otherPairs = "(other)"
	// shownOfCID is how much of the end of a content id names a module in metrics.
	shownOfCID = 12
)

// pair is what attempts are counted by.
type pair struct{ function, queue string }

// tally counts the attempts of a pair.
type tally struct {
	realized, failed prometheus.Counter
	runs, waits      prometheus.Observer
}

// tallies count the attempts of a worker.
type tallies struct {
	mu     sync.Mutex
	byPair map[pair]*tally

	realized, failed *prometheus.CounterVec
	runs, waits      *prometheus.HistogramVec
}

func newTallies(name string) *tallies {
	labels, variable := labelsOf(name), []string{"function", "queue"}
	return &tallies{
		byPair: map[pair]*tally{},
		realized: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "futura_worker_realized_total", Help: "Attempts that ended with a result.", ConstLabels: labels,
		}, variable),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "futura_worker_failed_total", Help: "Attempts that failed.", ConstLabels: labels,
		}, variable),
		runs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "futura_worker_run_seconds", Help: "How long functions that returned a result took.",
			ConstLabels: labels, Buckets: secondsBuckets(),
		}, variable),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "futura_worker_wait_seconds", Help: "From the submit of a future to the start of its first attempt, " +
				"if it waited for nothing but a worker.", ConstLabels: labels, Buckets: secondsBuckets(),
		}, []string{"queue"}),
	}
}

// of returns what counts the attempts of a future with this spec.
func (t *tallies) of(spec *layout.Spec) *tally {
	p := pair{otherPairs, otherPairs}
	if spec != nil {
		p = pair{spec.Function, cmp.Or(spec.Queue, layout.DefaultQueue)}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.byPair[p]
	if known == nil && len(t.byPair) >= maxPairs {
		p = pair{otherPairs, otherPairs}
		known = t.byPair[p]
	}
	if known == nil {
		shown := shortFunction(p.function)
		known = &tally{
			realized: t.realized.WithLabelValues(shown, p.queue), failed: t.failed.WithLabelValues(shown, p.queue),
			runs: t.runs.WithLabelValues(shown, p.queue), waits: t.waits.WithLabelValues(p.queue),
		}
		t.byPair[p] = known
	}
	return known
}

// countWait counts how long a future has waited for a worker whose first attempt begins.
func (w *Worker) countWait(j *job) {
	if wait, known := j.future.Waited(j.started); known && !j.sourced {
		w.tallies.of(j.future.Spec).waits.Observe(wait.Seconds())
	}
}

// shortFunction is the function in metrics: a module is named by the end of its content id, as
// all begin alike.
func shortFunction(function string) string {
	module, method, ok := layout.SplitWasm(function)
	if !ok || len(module) <= shownOfCID {
		return function
	}
	if method != "" {
		method = "/" + method
	}
	return modulePrefix + module[len(module)-shownOfCID:] + method
}
