package futures

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/circles"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/taskcontext"
)

// ErrOwnLane is returned by the awaits of a function that runs in a lane of width 1, for
// a future that it has submitted to the same lane: that gets in only after the function
// has ended, so the await would last for ever.
var ErrOwnLane = errors.New("the function awaits a future of its own lane, of width 1")

// ErrCircle is returned by the await of a function that waits for a future which waits for the function, through
// others or through lanes of width 1: none of these waits would end. It comes once a circle has lasted for
// twice the dead-after time of the cluster, to the function whose wait is the youngest; the others go on
// waiting. Its text names them all. A function that awaits several futures at once is not part of a circle,
// since it may go on with the first. What a function does beside its await, in other goroutines, does not count.
var ErrCircle = circles.ErrCircle

// blockedByCaller returns ErrOwnLane if the function that awaits with ctx has the one slot
// that a future needs which it has submitted by the same handle. It reads nothing unless
// such a future is in the lane of the function.
func (c *Client) blockedByCaller(ctx context.Context, fs []*Future) error {
	own, _ := ctx.Value(taskcontext.LaneKey{}).(layout.Lane)
	if own.IsZero() {
		return nil
	}
	var ids []ID
	for _, f := range fs {
		if f.lane == own && c.registry.settledOf(f) == nil {
			if ids = append(ids, f.id); len(ids) == layout.MaxSubmit {
				break
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	kind, err := c.LaneKind(ctx, own.Kind)
	if err != nil || kind.Width != 1 || kind.Bundle != "" {
		return nil // what can't be known does no harm: the await goes on
	}
	rows, err := c.cluster.GetMany(ctx, ids)
	if err != nil {
		return nil
	}
	for i := range rows {
		if r := &rows[i]; r.Spec != nil && r.Spec.Lane == own && !r.State().Terminal() && !r.HasSlot() {
			return fmt.Errorf("%w: %s is in line of lane %v, whose slot this function has, and runs after it: %s", ErrOwnLane,
				r.ID, own, outOfOwnLane(own))
		}
	}
	return nil
}

// outOfOwnLane says what to do instead of an await in the own lane.
func outOfOwnLane(own layout.Lane) string {
	if actors.IsLaneKind(own.Kind) {
		return "change the state in this call, or have the other one made by its end (Method.Send)"
	}
	return "submit it to another lane or to none, widen the lane, or end this function and let another one take the " +
		"result (Task.After)"
}
