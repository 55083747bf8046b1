// Package top shows a cluster in a terminal, live: what it does and what is wrong with it. Names
// and errors come from others: no control character of them reaches the terminal.
package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/console"
)

// Snapshot is what a cluster does, and what is wrong with it.
type Snapshot struct {
	Cluster string               `json:"cluster"`
	At      time.Time            `json:"at"`
	Total   layout.QueueCounts   `json:"total"` // of all queues
	Alive   int                  `json:"workers_alive"`
	Slots   int64                `json:"slots"` // of the workers that are alive
	Free    int64                `json:"free_slots"`
	Wrong   []Problem            `json:"wrong"`  // at most 20
	Queues  []layout.QueueCounts `json:"queues"` // the busiest first: 50, and (other)
	// Functions are those of the last hour, those that fail first.
	Functions []httpapi.ActivityFunction `json:"functions"`
	Workers   []httpapi.Worker           `json:"workers"` // the dead first
	Failed    []httpapi.Future           `json:"failed"`  // the last five

	futures []httpapi.Future
	pauses  []futures.Pause
	kinds   []futures.LaneKind
	logs    []httpapi.JobLog
}

// Problem is something to look at.
type Problem struct {
	// Severity is bad, or warn for what may be meant to be so.
	Severity string `json:"severity"`
	Text     string `json:"text"`
}

const (
	bad      = "bad"
	warn     = "warn"
	maxWrong = 20
)

// sum adds up what was read, and puts first what is to be looked at first.
func (s *Snapshot) sum(counts layout.Counts) {
	s.Queues = layout.CountsByQueue(counts)
	for i := range s.Queues {
		s.Total.Add(&s.Queues[i])
	}
	slices.SortStableFunc(s.Queues, func(a, b layout.QueueCounts) int {
		return cmp.Compare(b.Ready+b.Claimed, a.Ready+a.Claimed)
	})
	for i := range s.Workers {
		if w := &s.Workers[i]; w.Alive {
			s.Alive, s.Slots, s.Free = s.Alive+1, s.Slots+int64(w.Capacity.Slots), s.Free+int64(w.Free.Slots)
		}
	}
	slices.SortStableFunc(s.Workers, func(a, b httpapi.Worker) int {
		const order = "dead draining alive"
		return cmp.Or(cmp.Compare(strings.Index(order, stateOf(&a)), strings.Index(order, stateOf(&b))),
			cmp.Compare(nameOf(&a), nameOf(&b)))
	})
	s.Wrong = s.wrong()
}

// stateOf says whether a worker takes futures.
func stateOf(w *httpapi.Worker) string {
	switch {
	case !w.Alive:
		return "dead"
	case w.Draining:
		return "draining"
	}
	return "alive"
}

func nameOf(w *httpapi.Worker) string { return cmp.Or(w.Name, string(w.ID)) }

// wrong is what an operator should look at, what is bad first.
func (s *Snapshot) wrong() []Problem {
	all := []Problem{}
	add := func(severity, format string, args ...any) {
		all = append(all, Problem{severity, fmt.Sprintf(format, args...)})
	}
	switch wait := console.Count(s.Total.Ready, "waiting future"); {
	case s.Total.Ready > 0 && s.Alive == 0:
		add(bad, "%s, and no worker is alive", wait)
	case s.Total.Ready > 0 && s.Free > 0 && s.Total.Claimed == 0:
		add(warn, "%s, and %s: futura explain says why", wait, console.Count(s.Free, "free slot"))
	}
	if dead := len(s.Workers) - s.Alive; dead > 0 {
		add(bad, "%s died; what they held is being taken back", console.Count(dead, "worker"))
	}
	for i := range s.Functions {
		f := &s.Functions[i]
		if ran := f.Succeeded + f.FailedAttempts; f.FailedAttempts > 0 && f.FailedAttempts*10 >= ran {
			add(bad, "%s in the queue %s fails: %d of %d attempts in the last hour", short(f.Function), f.Queue,
				f.FailedAttempts, ran)
		}
	}
	for i := range s.logs {
		for j := range s.logs[i].Consumers {
			switch c := &s.logs[i].Consumers[j]; {
			case c.Failing > 0:
				add(bad, "consumer %s of the job log %s is held by job %d%s", c.Name, s.logs[i].Queue, c.Failing, after(c.Error))
			case c.Parked > 0:
				add(warn, "consumer %s of the job log %s has parked %s", c.Name, s.logs[i].Queue, console.Count(c.Parked, "job"))
			}
		}
	}
	for i := range s.Workers {
		if w := &s.Workers[i]; stateOf(w) == "draining" {
			add(warn, "worker %s stops, and takes no more futures", nameOf(w))
		}
	}
	for _, p := range s.pauses {
		add(warn, "the %s %s was paused %s ago%s", p.What, short(p.Name), brief(s.At.Sub(p.At)), after(p.Reason))
	}
	for _, k := range s.kinds {
		if k.Paused {
			add(warn, "lanes of %s are paused", k.Name)
		}
	}
	slices.SortStableFunc(all, func(a, b Problem) int { return cmp.Compare(a.Severity, b.Severity) })
	return all[:min(len(all), maxWrong)]
}

// short cuts the middle of long names of modules.
func short(name string) string {
	if id, ok := strings.CutPrefix(name, "wasm:"); ok && len(id) > 30 {
		return "wasm:" + id[:6] + "…" + id[len(id)-8:]
	}
	return name
}

func after(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// brief is a time to two digits or so.
func brief(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", max(d, 0).Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dmin", int(d.Minutes()))
	}
	return fmt.Sprintf("%dh", int(d.Hours()))
}
