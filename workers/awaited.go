package workers

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel/circles"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/taskcontext"
)

// wait is one wait of a running function.
type wait struct {
	what   taskcontext.Awaited // nil for one that is not for futures
	refuse taskcontext.Refuse  // nil for one that can't be refused
	since  time.Time

	// Of the one search for circles at a time.
	lookAt time.Time      // zero before the first one
	circle circles.Circle // that the last one has found
}

// awaited returns what the functions of a membership await, for its heartbeat: those that have waited
// for the longest time. What they wait for is asked without mu, since a client answers.
func (s *slots) awaited(m *membership) []layout.Await {
	type waiting struct {
		id    layout.ID
		since time.Time
		what  []taskcontext.Awaited
	}
	var all []waiting
	s.mu.Lock()
	for j := range s.running {
		if j.membership != m || !j.yielded || j.sourced || j.settled.Load() {
			continue
		}
		of := waiting{id: j.future.ID}
		for _, w := range j.waits {
			if w.what == nil {
				continue
			}
			if len(of.what) == 0 { // they are in the order in which they began
				of.since = w.since
			}
			of.what = append(of.what, w.what)
		}
		if len(of.what) > 0 {
			all = append(all, of)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b waiting) int {
		return cmp.Or(a.since.Compare(b.since), bytes.Compare(a.id[:], b.id[:]))
	})
	var told []layout.Await
	for _, of := range all {
		if len(told) == layout.MaxAwaits {
			break
		}
		a := layout.Await{ID: of.id, Since: layout.Millis(of.since)}
		for _, what := range of.what {
			one, count := what()
			if a.For.IsZero() {
				a.For = one
			}
			a.Count += count
		}
		if a.Count > 0 {
			told = append(told, a)
		}
	}
	return told
}
