package fdbmodel

import (
	"time"

	"github.com/futura-run/futura/fdbmodel/internal/meter"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// countEnds adds what attempts have used, and how they ended, whose ends the store has.
func (r *Registration) countEnds(completions []Completion, outcomes []Outcome) {
	for i, outcome := range outcomes {
		c := &completions[i]
		if outcome != Lost && (c.Result != nil || c.Exception != nil) {
			attempt := meter.Attempt{Spec: c.Future.Spec, Inline: c.Future.Inline, RunTime: c.RunTime,
				Result: c.Result, Exception: c.Exception}
			r.Meter(attempt.Used())
		}
		if e, counts := c.ended(outcome); counts {
			r.Count(e)
		}
	}
}

// ended is how an attempt and its future have ended, if one of them has. The call of a bundle
// has a run time, and no end of its own.
func (c *Completion) ended(outcome Outcome) (e meter.Ended, counts bool) {
	spec, of := c.Future.Spec, c.After.State
	if outcome != Applied && outcome != Already || spec == nil {
		return e, false
	}
	e = meter.Ended{Function: spec.Function, Queue: spec.Queue, Wait: -1}
	if spec.Bundle {
		e.Run = max(c.RunTime, 0)
		return e, e.Run > 0
	}
	e.Succeeded = c.Result != nil && (outcome == Already || of == layout.Realized)
	e.FailedAttempt = c.Exception != nil
	e.Failed = outcome == Applied && of == layout.Failed && !c.After.Cancelled
	if e.Succeeded || e.FailedAttempt {
		e.Run = max(c.RunTime, 0)
		if wait, known := c.Future.Waited(c.Started); known {
			e.Wait = wait
		}
	}
	return e, e.Succeeded || e.FailedAttempt || e.Failed
}

// Waited returns how long the future had waited for a worker, since its submit, when its first
// attempt began. That is not known of others, of those that waited for something else than a
// worker, and for the zero time.
func (c *ClaimedFuture) Waited(began time.Time) (wait time.Duration, known bool) {
	s, a := c.Spec, &c.Attempts
	elsewhere := s.Later || s.HasInputs() || s.Held() || !s.Lane.IsZero()
	again := a.Failed > 0 || a.Crashes > 0 || a.Rejected > 0 || a.Rebuilt > 0 || a.Snoozed > 0 || a.Lifted ||
		a.Deaths.Len() > 0
	if elsewhere || again || began.IsZero() {
		return 0, false
	}
	return max(0, began.Sub(time.UnixMilli(s.SubmittedAt))), true
}
