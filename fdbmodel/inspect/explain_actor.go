package inspect

import (
	"context"
	"fmt"
	"strings"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// Admitted returns a future in one of some states that a lane has admitted, in the order of the
// states, and false if none is found. Where more than 2,000 keys of the cluster are those of a state, it
// does not look for one.
func Admitted(ctx context.Context, c *fdbmodel.Cluster, lane layout.Lane, states ...layout.State,
) (row layout.Row, found bool, err error) {
	for _, state := range states {
		n := &newest{cluster: c, filter: Filter{State: state}, from: layout.Youngest()}
		few, err := n.waiting(ctx)
		if err != nil {
			return row, false, err
		}
		for _, s := range few {
			for _, e := range s.buffer {
				if e.row.HasSlot() && e.row.Spec.Lane == lane {
					return *e.row, true, nil
				}
			}
		}
	}
	return row, false, nil
}

// textTurn says what a call of an actor waits for.
func textTurn(ctx context.Context, c *fdbmodel.Cluster, of actors.Ref, where *lanes.InLine) (string, error) {
	text := fmt.Sprintf("It waits for its turn on actor %s: %s", of, callsBefore(where.Before))
	if where.Record.Open == 0 {
		return text + ".", nil
	}
	row, found, err := Admitted(ctx, c, where.Lane, layout.Claimed, layout.Ready, layout.Delayed)
	if err != nil {
		return "", err
	}
	if !found {
		return text + ", and one that has its turn is not over.", nil
	}
	call := fmt.Sprintf("call %s (%s)", row.ID, strings.TrimPrefix(row.Spec.Function, "go:"))
	switch row.State() {
	case layout.Claimed:
		return text + fmt.Sprintf(", and %s runs now, on worker %s.", call, row.Claim.Worker), nil
	case layout.Delayed:
		return text + fmt.Sprintf(", and %s has its turn and waits for its next attempt: futura explain %s.", call,
			row.ID), nil
	}
	return text + fmt.Sprintf(", and %s has its turn and waits for a worker: futura explain %s.", call, row.ID), nil
}

func callsBefore(n int) string {
	switch {
	case n == 0:
		return "no call is before it in line"
	case n == 1:
		return "1 call is before it in line"
	case n >= countedAhead:
		return fmt.Sprintf("%d calls or more are before it in line", countedAhead)
	}
	return fmt.Sprintf("%d calls are before it in line", n)
}
