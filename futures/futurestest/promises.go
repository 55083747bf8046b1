package futurestest

import (
	"context"
	"errors"

	"github.com/futura-run/futura/futures"
)

// ErrLeave has OnPromise leave a promise as it is.
var ErrLeave = errors.New("futurestest: leave the promise")

// OnPromise has complete called for each promise that waits once nothing else can run, before time
// passes: the promise is resolved with the value, as by futures.Client.Resolve, or rejected with
// the error. With ErrLeave it goes on waiting, and is asked for again. A test may complete promises
// itself instead, with their tokens or by their ids, before it awaits them. It must come before
// the first Await, Advance and Run.
func (c *Cluster) OnPromise(complete func(futures.View) (any, error)) { c.complete = complete }

// completePromises reports whether one was completed.
func (c *Cluster) completePromises(ctx context.Context) (completed bool, err error) {
	if c.complete == nil {
		return false, nil
	}
	var waiting []futures.View
	if err := c.each(ctx, futures.Blocked, func(v *futures.View) {
		if v.Function == futures.FunctionPromise {
			waiting = append(waiting, *v)
		}
	}); err != nil {
		return false, err
	}
	for i := range waiting {
		value, refused := c.complete(waiting[i])
		switch {
		case errors.Is(refused, ErrLeave):
			continue
		case refused != nil:
			_, err = c.Client.Reject(ctx, waiting[i].ID, refused.Error())
		default:
			_, err = c.Client.Resolve(ctx, waiting[i].ID, value)
		}
		if err != nil {
			return completed, err
		}
		completed = true
	}
	return completed, nil
}
