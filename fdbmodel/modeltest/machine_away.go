package modeltest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
)

// awayCopy is a copy that a worker which has left may come back with.
type awayCopy struct {
	worker layout.WorkerID
	token  layout.Token
	until  time.Time
}

// leaveCopies has a worker with a result say that it keeps its copies in its directory.
// It leaves then, or does not.
func (m *Machine) leaveCopies(ctx context.Context) (change, error) {
	var ids []layout.ID
	for id, row := range m.Rows {
		if row.Object() != "" {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return none, nil
	}
	slices.SortFunc(ids, func(a, b layout.ID) int { return bytes.Compare(a[:], b[:]) })
	of := m.Rows[ids[m.random.IntN(len(ids))]].Result.Token.Worker
	w := m.by(of)
	if w == nil {
		return none, nil
	}
	until := m.Clock.Now().Add(time.Duration(m.random.IntN(30)) * time.Second)
	err := results.Of(m.C).LeaveCopies(ctx, w.ID(), ids, until)
	m.logf("%s (gone %t) keeps its copies of %v: %v", w.ID(), w.gone, ids, err)
	for _, id := range ids {
		m.away[id] = slices.Clip(m.away[id]) // it is looked at from now on
	}
	if err != nil || m.random.IntN(2) == 0 {
		return none, err
	}
	return m.leaveAs(ctx, w)
}

// lookAway reads which copies are awaited.
func (m *Machine) lookAway(ctx context.Context) {
	now := m.Clock.Now()
	for id := range m.away {
		row := m.Rows[id]
		if row == nil || row.Object() == "" {
			delete(m.away, id)
			continue
		}
		m.away[id] = nil
		copies, err := results.Of(m.C).Copies(ctx, id)
		m.require(err)
		for _, held := range copies {
			until := time.UnixMilli(held.Away)
			if !held.Alive && held.Object == row.Object() && until.After(now) {
				m.away[id] = append(m.away[id], awayCopy{held.Worker, row.Result.Token, until})
			}
		}
	}
}

// awaits reports whether a worker that was never reported as one without its copy may
// come back with the result of a future.
func (m *Machine) awaits(row *layout.Row) bool {
	return slices.ContainsFunc(m.away[row.ID], func(a awayCopy) bool {
		return a.token == row.Result.Token && a.until.After(m.Clock.Now()) && !m.missed[missedCopy{row.ID, a.worker}]
	})
}

// missedCopy is a worker that was reported as one without its copy.
type missedCopy struct {
	id     layout.ID
	worker layout.WorkerID
}

// awaitedOr returns the first future whose result is awaited, or id.
func (m *Machine) awaitedOr(id layout.ID) layout.ID {
	var first layout.ID
	for other, copies := range m.away {
		if len(copies) > 0 && (first.IsZero() || bytes.Compare(other[:], first[:]) < 0) {
			first = other
		}
	}
	if first.IsZero() {
		return id
	}
	return first
}

// isAwaited reports whether an error says that a copy is awaited, and one was left: it may
// have become one with a commit that was made late.
func (m *Machine) isAwaited(id layout.ID, err error) bool {
	_, left := m.away[id]
	return left && errors.Is(err, fdbmodel.ErrUnreachable)
}
