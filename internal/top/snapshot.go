package top

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
	"github.com/futura-run/futura/internal/console"
)

// Snapshot is what a cluster does, and what is wrong with it.
type Snapshot struct {
	Cluster string    `json:"cluster"`
	At      time.Time `json:"at"`
	Total   States    `json:"futures"`
	Slots   int64     `json:"slots"` // of the workers that are alive
	Free    int64     `json:"free_slots"`
	Wrong   []Problem `json:"wrong"`  // at most 20
	Queues  []Queue   `json:"queues"` // the fullest first; at most 51, the last of which has the rest
	// Functions are those of the last hour, those that fail first.
	Functions []httpapi.ActivityFunction `json:"functions"`
	Workers   []httpapi.Worker           `json:"workers"` // the dead first
	Failed    []httpapi.Future           `json:"failed"`  // the last five

	futures []httpapi.Future
	pauses  []httpapi.Pause
	kinds   []futures.LaneKind
	logs    []httpapi.JobLog
}

// States is how many futures are in each state.
type States struct {
	Ready    int64 `json:"ready"`
	Claimed  int64 `json:"claimed"`
	Delayed  int64 `json:"delayed"`
	Blocked  int64 `json:"blocked"`
	Realized int64 `json:"realized"`
	Failed   int64 `json:"failed"`
}

// Queue is how many futures a queue has.
type Queue struct {
	Queue string `json:"queue"`
	States
}

// Problem is something to look at.
type Problem struct {
	// Severity is bad, or warn for what may be meant to be so.
	Severity string `json:"severity"`
	Text     string `json:"text"`
}

const (
	bad  = "bad"
	warn = "warn"

	maxWrong = 20
)

// count adds counters up by queue.
func (s *Snapshot) count(counts layout.Counts) {
	s.Queues = []Queue{}
	for _, n := range layout.CountsByQueue(counts) {
		q := Queue{n.Queue, States{n.Ready, n.Claimed, n.Delayed, n.Blocked, n.Realized, n.Failed}}
		s.Queues = append(s.Queues, q)
		t := &s.Total
		*t = States{t.Ready + q.Ready, t.Claimed + q.Claimed, t.Delayed + q.Delayed, t.Blocked + q.Blocked,
			t.Realized + q.Realized, t.Failed + q.Failed}
	}
	slices.SortStableFunc(s.Queues, func(a, b Queue) int { return cmp.Compare(b.Ready+b.Claimed, a.Ready+a.Claimed) })
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

// sortWorkers puts those first that are dead, then those that stop.
func sortWorkers(workers []httpapi.Worker) {
	slices.SortStableFunc(workers, func(a, b httpapi.Worker) int {
		return cmp.Or(-cmp.Compare(stateOf(&a), stateOf(&b)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
}

func nameOf(w *httpapi.Worker) string { return cmp.Or(w.Name, string(w.ID)) }

// wrong adds up slots, and returns what an operator should look at.
func wrong(s *Snapshot) []Problem {
	all := []Problem{}
	add := func(severity, format string, args ...any) {
		if len(all) < maxWrong {
			all = append(all, Problem{severity, fmt.Sprintf(format, args...)})
		}
	}
	alive := 0
	for i := range s.Workers {
		if w := &s.Workers[i]; w.Alive {
			alive, s.Slots, s.Free = alive+1, s.Slots+int64(w.Capacity.Slots), s.Free+int64(w.Free.Slots)
		}
	}
	switch wait := console.Count(s.Total.Ready, "waiting future"); {
	case s.Total.Ready > 0 && alive == 0:
		add(bad, "%s, and no worker is alive", wait)
	case s.Total.Ready > 0 && s.Free > 0 && s.Total.Claimed == 0:
		add(warn, "%s, and %s: futura explain says why", wait, console.Count(s.Free, "free slot"))
	}
	if dead := len(s.Workers) - alive; dead > 0 {
		add(bad, "%s died; what they held is being taken back", console.Count(dead, "worker"))
	}
	for i := range s.Workers {
		if w := &s.Workers[i]; stateOf(w) == "draining" {
			add(warn, "worker %s stops, and takes no more futures", nameOf(w))
		}
	}
	for i := range s.pauses {
		p := &s.pauses[i]
		add(warn, "the %s %s was paused %s ago%s", p.What, short(p.Name), brief(s.At.Sub(p.At)), after(p.Reason))
	}
	for i := range s.kinds {
		if s.kinds[i].Paused {
			add(warn, "lanes of %s are paused", s.kinds[i].Name)
		}
	}
	for i := range s.Functions {
		f := &s.Functions[i]
		if ran := f.Succeeded + f.FailedAttempts; f.FailedAttempts > 0 && f.FailedAttempts*10 >= ran {
			add(bad, "%s fails: %d of %d attempts in the last hour", short(f.Function), f.FailedAttempts, ran)
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
	return all
}

// describe says of a future where it is and why, and its last error.
func describe(e *futures.Explanation, v *futures.View) []string {
	lines := []string{fmt.Sprintf("%s (%s): %s", e.State, e.Reason, e.Text), "",
		"function  " + v.Function, "queue     " + v.Queue,
		"submitted " + v.SubmittedAt.UTC().Format(time.RFC3339), fmt.Sprintf("attempt   %d of %d", v.Attempt, v.MaxAttempts)}
	if v.Lane.Kind != "" {
		lines = append(lines, "lane      "+v.Lane.String())
	}
	if v.Worker != "" {
		lines = append(lines, "worker    "+string(v.Worker))
	}
	if f := v.Failure; f != nil {
		lines = append(lines, "", fmt.Sprintf("last error, of attempt %d at %s: %s", f.Attempt, f.At.UTC().Format(time.RFC3339),
			f.Kind))
		lines = append(lines, strings.Split(f.Message, "\n")...)
	}
	return lines
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
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

var errSlow = fmt.Errorf("the store did not answer within %v", readTime)

// slowCause is errSlow for what the time limit of a reading ended, otherwise the error.
func slowCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errSlow) {
		return cause
	}
	return err
}

// cutLine cuts off the first whole line; a line of a log is its message.
func cutLine(text []byte) (line string, rest []byte, whole bool) {
	first, rest, whole := bytes.Cut(text, []byte("\n"))
	line = string(first)
	if _, message, ok := strings.Cut(line, " msg="); ok {
		line = message
	}
	if quoted, err := strconv.QuotedPrefix(line); err == nil {
		line, _ = strconv.Unquote(quoted)
	}
	return line, rest, whole
}
