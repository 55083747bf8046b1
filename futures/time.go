package futures

import (
	"context"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/taskcontext"
)

// Expires is how long the future may wait to begin; see Task.Expires.
func Expires(d time.Duration) Option { return func(t *Task) { t.Expires = d } }

// Deadline is when the future must be over; see Task.Deadline.
func Deadline(at time.Time) Option { return func(t *Task) { t.Deadline = at } }

// setLimits says when a future must have begun, and be over.
func (c *Client) setLimits(ctx context.Context, t *Task, s *fdbmodel.Submission) error {
	if t.Expires < 0 {
		return fmt.Errorf("%w: it may wait for %v, which is negative", layout.ErrBadSpec, t.Expires)
	}
	if err := checkTime("it is delayed", s.NotBefore); err != nil {
		return err
	}
	if t.Expires > 0 {
		ready := c.cluster.Now()
		if s.NotBefore.After(ready) {
			ready = s.NotBefore
		}
		expires := ready.Add(t.Expires)
		if err := checkTime("it may wait", expires); err != nil {
			return err
		}
		s.Spec.ExpiresAt = layout.Millis(expires)
	}
	if err := checkTime("it has", t.Deadline); err != nil {
		return err
	}
	deadline, _ := ctx.Value(taskcontext.DeadlineKey{}).(time.Time)
	if own := t.Deadline; !own.IsZero() && (deadline.IsZero() || own.Before(deadline)) {
		deadline = own
	}
	if !deadline.IsZero() {
		s.Spec.Deadline = layout.Millis(later(deadline, time.UnixMilli(1)))
	}
	return nil
}

// lastMillis is the end of the year 9999 in UTC: JSON has no later times, and records no much later ones.
const lastMillis = 253402300799999

// checkTime returns ErrBadSpec for a time behind the last one.
func checkTime(what string, until time.Time) error {
	if until.After(time.UnixMilli(lastMillis)) {
		return fmt.Errorf("%w: %s until %v: use a time up to the end of the year 9999", layout.ErrBadSpec, what, until)
	}
	return nil
}
