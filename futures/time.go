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
	if t.Expires > 0 {
		ready := c.cluster.Now()
		if s.NotBefore.After(ready) {
			ready = s.NotBefore
		}
		s.Spec.ExpiresAt = layout.Millis(ready.Add(t.Expires))
	}
	deadline, _ := ctx.Value(taskcontext.DeadlineKey{}).(time.Time)
	if own := t.Deadline; !own.IsZero() && (deadline.IsZero() || own.Before(deadline)) {
		deadline = own
	}
	if !deadline.IsZero() {
		s.Spec.Deadline = max(1, layout.Millis(deadline))
	}
	return nil
}
