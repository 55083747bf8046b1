package fdbmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/read"
	"github.com/futura-run/futura/fdbmodel/state"
)

// ErrUnreachable is returned for a result that is an object when workers that
// should have it can't be reached, or have left and may come back with it. Try again later.
var ErrUnreachable = errors.New("no worker that has the result can be reached")

// Lose says that the result of a future, as it was read, could not be had from any of
// its copies: missing are the workers, alive, that do not have theirs. It removes the
// copies of those and of dead workers. If that leaves none, the future runs again, or
// fails as lost if it may not. It returns the state after that: realized if there are
// copies, or another result by now. It returns ErrNotFound for an unknown future, and
// ErrUnreachable while only workers that have left, and are not named as missing, may
// come back with a copy.
func (w *WriteSet) Lose(ctx context.Context, id layout.ID, token layout.Token, missing []layout.WorkerID,
) (layout.State, error) {
	row, err := read.Existing(ctx, w.Tx, w.Keys, id)
	if err != nil {
		return 0, err
	}
	if row.Object() == "" || row.Result.Token != token {
		return row.State(), nil
	}
	copies, err := read.Copies(ctx, w.Tx, w.Keys, id)
	if err != nil {
		return 0, err
	}
	now := w.cluster.clock.Now()
	var gone []string
	var alive, away *read.Copy
	for i := range copies {
		held := &copies[i]
		is := held.Object == row.Result.Object && !slices.Contains(missing, held.Worker)
		switch {
		case is && held.Alive:
			alive = held
		case is && held.Awaited(now) > 0:
			away = held
		default:
			w.Tx.Clear(held.Key)
			gone = append(gone, string(held.Worker))
		}
	}
	switch {
	case alive != nil:
		return row.State(), nil
	case away != nil:
		return 0, fmt.Errorf("%w: worker %s stopped and keeps it in its directory; start a worker with that directory "+
			"within %v, or it counts as lost", ErrUnreachable, away.Worker, away.Awaited(now).Round(time.Second))
	}
	why := "no worker has a copy"
	if len(gone) > 0 {
		why = "with " + strings.Join(gone[:min(len(gone), 5)], ", ")
	}
	after, outcome := state.Next(row, state.Event{Kind: state.EventLose, Token: token, Reason: why, Now: now})
	if outcome != Applied {
		return row.State(), nil
	}
	w.Apply(&row, &after)
	return after.State(), nil
}
