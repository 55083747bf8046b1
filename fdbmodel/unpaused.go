package fdbmodel

import (
	"slices"

	"github.com/futura-run/futura/fdbmodel/internal/pause"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// learnPauses wakes idle workers if something was resumed.
func (c *Cluster) learnPauses(seen *pause.Seen) {
	if c.paused.Learn(seen) {
		c.notifier.WakeAll()
	}
}

// queues returns those queues of a worker that are not paused.
func (r *Registration) queues() []string {
	if !r.cluster.paused.Any() {
		return r.info.Queues
	}
	return unpaused(r.info.Queues, r.cluster.paused.Queue)
}

// unpaused returns the names that are not paused.
func unpaused(names []string, paused func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(names), paused)
}

// runs returns which functions a worker wants futures of: those of a request, or all that
// it can run, apart from those that are paused.
func (r *Registration) runs(asked func(string) bool) func(string) bool {
	if asked == nil {
		asked = r.info.Runs
	}
	if !r.cluster.paused.Any() {
		return asked
	}
	return func(function string) bool { return asked(function) && !r.cluster.paused.Function(function) }
}

// able returns what a worker could take at present, of what is not paused.
func (r *Registration) able() layout.WorkerInfo {
	info := r.info
	if info.Queues = r.queues(); r.cluster.paused.Any() {
		info.Functions = unpaused(info.Functions, r.cluster.paused.Function)
	}
	return info
}
