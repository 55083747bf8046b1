package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// ErrDeadline is the cause that ends a function's context when the deadline of its
// future passed. It is context.DeadlineExceeded as well.
var ErrDeadline = fmt.Errorf("workers: the deadline of the future has passed: %w", context.DeadlineExceeded)

// snoozeError asks for another run later.
type snoozeError struct{ wait time.Duration }

// Error implements error.
func (e snoozeError) Error() string {
	return fmt.Sprintf("the function asks to be run again in %v", e.wait)
}

// Snoozes tells what wraps functions, such as a Middleware, that the attempt has not failed.
func (snoozeError) Snoozes() bool { return true }

// Snooze is what a function returns to be run again after d, because it can't do its
// work yet: no attempt counts, nothing is logged, and the hooks are not called. It may do
// so any number of times, until the deadline of its future or the time when that expires.
// A wrapped one counts as well. Middleware knows it by a method Snoozes() bool that returns true.
func Snooze(d time.Duration) error { return snoozeError{max(d, 0)} }

// startedLate says how a job ends whose future must not begin any more; nil if it may.
func (j *job) startedLate(now time.Time) *fdbmodel.Completion {
	if at, _ := j.timeLimit(); at == 0 || layout.Millis(now) < at {
		return nil
	}
	return &fdbmodel.Completion{Future: &j.future, Expire: true}
}

// timeLimit is when the future ends if no attempt has begun.
func (j *job) timeLimit() (at int64, kind layout.FailureKind) {
	row := layout.Row{Spec: j.future.Spec, Attempts: j.future.Attempts}
	return row.Limit()
}

// futureDeadline is when the future ends even if it runs, the zero time for never.
func (j *job) futureDeadline() time.Time {
	if at := j.future.Spec.Deadline; at != 0 && !j.future.Attempts.Lifted {
		return time.UnixMilli(at)
	}
	return time.Time{}
}

// boundBy makes the deadline of the future that of the attempt, if it comes first.
func (j *job) boundBy(deadline time.Time) {
	if deadline.IsZero() || !j.deadline.IsZero() && j.deadline.Before(deadline) {
		return
	}
	j.deadline, j.final = deadline, true
}

// pastDeadline is how an attempt ends that was running at the deadline of its future.
func (j *job) pastDeadline(deadline time.Time) fdbmodel.Completion {
	return fdbmodel.Completion{Future: &j.future, Exception: &layout.Exception{
		Kind: layout.KindDeadline, Message: "was running at its deadline: " + deadline.UTC().Format(time.RFC3339),
	}}
}

// timeAllowed is how long the function may run from now on, 0 for no bound.
func (j *job) timeAllowed(now time.Time) time.Duration {
	timeout := j.timeout()
	if !j.final {
		return timeout
	}
	left := max(j.deadline.Sub(now), time.Nanosecond)
	if timeout > 0 {
		left = min(left, timeout)
	}
	return left
}

// reportLate tells the log and the hooks of a future whose time was over before its
// attempt began.
func (w *Worker) reportLate(c *fdbmodel.Completion) {
	_, kind := c.Future.Spec.LimitAt()
	late := *c
	late.Exception = &layout.Exception{Kind: kind, Message: "its time was over before the attempt began"}
	w.report(&late)
}

// promptReturn is how soon after its time was over a function is to have returned.
const promptReturn = time.Second

// logDiscarded tells the log why what a function returned does not count.
func (w *Worker) logDiscarded(j *job) {
	log, cause, now := w.options.Logger, context.Cause(j.ctx), w.cluster.Now()
	attrs := []any{"future", j.future.ID, "function", j.function(), "cause", cause}
	early := cause == nil // what has ended it is about to say so
	switch {
	case errors.Is(cause, ErrTimeout), errors.Is(cause, ErrDeadline), early && j.isPast(now):
		after := max(now.Sub(j.limit())-time.Duration(j.extended.Load())*RemotePatience, 0)
		attrs = append(attrs, "ran", now.Sub(j.started), "after", after)
		if after <= promptReturn {
			log.Info("the function returned when its time was over; its result is discarded", attrs...)
			return
		}
		log.Warn("the function returned long after its time was over, and had its slot until then; its result is discarded: "+
			"have it return when its context ends", attrs...)
	case errors.Is(cause, ErrCancelled):
		log.Info("the function returned after its future was cancelled; its result is discarded", attrs...)
	case errors.Is(cause, ErrStopping), early && j.membership.closing.Load():
		log.Info("the function returned after its worker gave its future back to stop; its result is discarded", attrs...)
	default:
		log.Warn("the function returned after its claim was lost; its result is discarded", attrs...)
	}
}
