package lane

import (
	"context"
	"errors"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// ErrFull is returned when as many futures wait in line for a lane as its kind allows. Every FullError
// matches it.
var ErrFull = errors.New("the lane is full")

// FullError is the error of a transaction that submits a future to a full lane.
type FullError struct {
	Lane layout.Lane
	// Max is how many may wait.
	Max int
	// IDs are the futures that find no place, if all others get theirs.
	IDs []layout.ID
}

// Error implements error.
func (e *FullError) Error() string {
	return fmt.Sprintf("lane %s: %v: %d in line, which is the most for a lane of its kind: submit again once some have "+
		"run, or let more wait with futura lane set %s --max-waiting", e.Lane, ErrFull, e.Max, e.Lane.Kind)
}

// Unwrap returns ErrFull.
func (e *FullError) Unwrap() error { return ErrFull }

// waiting is how many futures are in line for a lane, without those that get in line with the
// transaction.
type waiting struct {
	*state
	n       int
	unknown bool // n is to come from all
	all     kv.Pending[kv.Page]
}

// refuse returns a FullError if more submitted futures are left to get in line than may wait. It comes
// after all admissions, and before the first future is put in line. Its reads of a line conflict with
// whatever gets in line meanwhile. Those that were submitted before have their place in any case.
func (a *admission) refuse(ctx context.Context) error {
	var limited []waiting
	for _, l := range a.lanes {
		if l.kind.Settings.MaxWaiting > 0 && l.countSubmitted() > 0 {
			limited = append(limited, waiting{state: l})
		}
	}
	version := kv.NoVersion
	if a.shared && len(limited) > 0 {
		var err error
		if version, err = a.Tx.ReadVersion(ctx); err != nil {
			return err
		}
	}
	for i := range limited {
		w := &limited[i]
		switch {
		case !w.was.Lined: // none is in line
		case a.shared && w.was.CountedAt == int64(version):
			w.n = w.was.Counted
		default:
			line := a.Keys.InLine(w.lane)
			w.all, w.unknown = a.Tx.GetRange(line, kv.RangeOptions{Limit: w.kind.Settings.MaxWaiting}), true
		}
	}
	for i := range limited {
		w := &limited[i]
		if err := w.join(ctx); err != nil {
			return err
		}
		if a.shared {
			w.record.Counted, w.record.CountedAt = w.n, int64(version)
		}
	}
	return nil
}

func (l *state) countSubmitted() (n int) {
	for i := range l.joining {
		if l.joining[i].submitted {
			n++
		}
	}
	return n
}

// join adds those that get in line. It returns a FullError for those without a place.
func (w *waiting) join(ctx context.Context) error {
	if w.unknown {
		page, err := w.all.Wait(ctx)
		if err != nil {
			return err
		}
		w.n = len(page.Items)
	}
	w.n += len(w.joining) - w.countSubmitted()
	full := &FullError{Lane: w.lane, Max: w.kind.Settings.MaxWaiting}
	for i := range w.joining {
		switch {
		case !w.joining[i].submitted:
		case w.n < full.Max:
			w.n++
		default:
			full.IDs = append(full.IDs, w.joining[i].row.ID)
		}
	}
	if len(full.IDs) > 0 {
		return full
	}
	return nil
}
