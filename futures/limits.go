package futures

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/internal/clock"
)

// Names of the model for the limits of a cluster.
type (
	// Limits are the most futures that are pending and that run, the most bytes, and the
	// most submits per second, of a whole cluster.
	Limits = quota.Limits
	// LimitUsage is how much of them is used.
	LimitUsage = quota.Usage
	// LimitError says which limit is exceeded, and when to come back. Errors.Is holds for
	// ErrLimit.
	LimitError = quota.LimitError
)

// ErrLimit is returned by Submit when a limit of the cluster is exceeded and the task
// does not wait for room. Every LimitError matches it.
var ErrLimit = quota.ErrLimit

// WaitForRoom has the submit wait while a limit of the cluster is exceeded; see
// Task.WaitForRoom.
func WaitForRoom() Option { return func(t *Task) { t.WaitForRoom = true } }

// Limits returns the limits of the cluster, and how much of them is used.
func (c *Client) Limits(ctx context.Context) (Limits, LimitUsage, error) {
	if err := c.usable(); err != nil {
		return Limits{}, LimitUsage{}, err
	}
	return quota.Of(c.cluster).Get(ctx)
}

// SetLimits changes the limits of the cluster and returns them: change gets the present
// ones, may be called more than once, and must do the same each time. Processes obey them
// within two seconds. It returns ErrBadConfig for invalid ones. An unknown commit is
// retried and harmless.
func (c *Client) SetLimits(ctx context.Context, change func(*Limits)) (Limits, error) {
	if err := c.usable(); err != nil {
		return Limits{}, err
	}
	return quota.Of(c.cluster).Set(ctx, change)
}

// admit returns a LimitError if the cluster has no room for n more futures, or waits
// until it has. The caller calls done once they are committed, or are not.
func (c *Client) admit(ctx context.Context, n int, wait bool) (done func(), err error) {
	err = c.findRoom(ctx, n, wait, func(ctx context.Context, n int) (err error) {
		done, err = quota.Of(c.cluster).AdmitUntil(ctx, n)
		return err
	})
	return done, err
}

// admitAll is admit for submissions. Those that are stored take no place: a repeated submit finds its future also
// where there is no room.
func (c *Client) admitAll(ctx context.Context, subs []fdbmodel.Submission, wait bool) (done func(), err error) {
	err = c.findRoom(ctx, len(subs), wait, func(ctx context.Context, n int) (err error) {
		if done, err = quota.Of(c.cluster).AdmitUntil(ctx, n); !errors.Is(err, ErrLimit) {
			return err
		}
		stored, failed := c.countStored(ctx, subs)
		if failed == nil && stored > 0 {
			done, err = quota.Of(c.cluster).AdmitUntil(ctx, n-stored)
		}
		return cmp.Or(failed, err)
	})
	return done, err
}

// countStored returns how many submissions have the id or the key of a future that is stored.
func (c *Client) countStored(ctx context.Context, subs []fdbmodel.Submission) (n int, err error) {
	var ids []ID
	for i := range subs {
		id := subs[i].ID
		if id.IsZero() && subs[i].Key != "" {
			id = layout.KeyedID(c.cluster.Name(), subs[i].Key)
		}
		if !id.IsZero() && !subs[i].Drawn {
			ids = append(ids, id)
		}
	}
	for part := range slices.Chunk(ids, layout.MaxSubmit) {
		found, err := c.cluster.GetMany(ctx, part)
		if layout.IsUnreadable(err) {
			continue
		}
		if err != nil {
			return 0, err
		}
		n += len(found)
	}
	return n, nil
}

// askAgain is how long at most a submit waits before it asks for room again.
const askAgain = time.Second

// findRoom asks for room for n futures, and waits for it if that is wanted. When ctx ends, the error names the limit
// that was last exceeded, or says that the store is unavailable.
func (c *Client) findRoom(ctx context.Context, n int, wait bool, ask func(context.Context, int) error) error {
	var last *LimitError
	for {
		err := ask(ctx, n)
		var limit *LimitError
		late := wait && errors.Is(err, context.DeadlineExceeded)
		switch {
		case late && errors.Is(err, kv.ErrUnavailable):
			return err
		case err != nil && last != nil && ctx.Err() != nil:
			return &waitedError{last, ctx.Err()}
		case late && !errors.As(err, &limit):
			return fmt.Errorf("%w: it did not answer until the end of the wait for room: %w", kv.ErrUnavailable, err)
		}
		if !errors.As(err, &limit) || !wait || limit.RetryAfter == 0 || c.manual() {
			return err
		}
		last = limit
		clk := c.cluster.Clock()
		// The limit may be raised meanwhile.
		if ended := clock.Sleep(ctx, clk, min(limit.RetryAfter, askAgain)); ended != nil {
			return &waitedError{err, ended}
		}
	}
}

// waitedError is the limit that was exceeded until the end of a wait, and the error of the context that ended it.
type waitedError struct{ limit, ended error }

func (e *waitedError) Error() string {
	return e.limit.Error() + "; so it was until the end of the wait"
}

func (e *waitedError) Unwrap() []error { return []error{e.limit, e.ended} }

// waitsForRoom reports whether one of tasks waits for room.
func waitsForRoom(tasks []Task) bool {
	return slices.ContainsFunc(tasks, func(t Task) bool { return t.WaitForRoom })
}

// commitAdmitted creates futures as the cluster has room for them: all or none, or, if
// they may wait, some at a time.
func (c *Client) commitAdmitted(ctx context.Context, subs []fdbmodel.Submission, wait bool,
) (made []*Future, err error) {
	if !wait {
		done, err := c.admitAll(ctx, subs, false)
		if err != nil {
			return nil, err
		}
		defer done()
		return c.commit(ctx, subs)
	}
	most := layout.MaxSubmit
	for len(subs) > 0 {
		n := min(len(subs), most)
		done, err := c.admitAll(ctx, subs[:n], true)
		if fits := partsThatFit(err); fits > 0 && fits < n {
			most = fits
			continue
		}
		if err != nil {
			return made, err
		}
		part, err := c.commit(ctx, subs[:n])
		done()
		if made = append(made, part...); err != nil {
			return made, err
		}
		subs = subs[n:]
	}
	return made, nil
}

// partsThatFit returns how many futures to submit at a time where so many as were asked
// for never fit, or 0 for another error: a part of the limit, so that they don't wait for
// all others to be gone.
func partsThatFit(err error) int {
	var limit *LimitError
	if !errors.As(err, &limit) || limit.RetryAfter > 0 || limit.Max < 1 {
		return 0
	}
	return max(int(limit.Max)/4, 1)
}
