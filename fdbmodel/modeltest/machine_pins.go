package modeltest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/results"
)

// pin pins a future, or ends a pin. Some pins end with a session.
func (m *Machine) pin(ctx context.Context) (change, error) {
	id, holder := m.some(), fmt.Sprint("p", m.random.IntN(3))
	var err error
	var session layout.SessionID
	unpin := m.random.IntN(2) == 0
	if unpin {
		err = results.Of(m.C).Unpin(ctx, id, holder)
	} else {
		session = []layout.SessionID{"s1", "s2", ""}[m.random.IntN(3)]
		err = results.Of(m.C).Pin(ctx, id, holder, session)
	}
	m.logf("pin %s by %s with %q (unpin %t): %v", id, holder, session, unpin, err)
	if errors.Is(err, fdbmodel.ErrNotFound) || errors.Is(err, fdbmodel.ErrTransition) {
		err = nil
	}
	return func(before, after *layout.Row) bool {
		if before == nil || after == nil || after.ID != id || after.State() != before.State() ||
			after.Attempts != before.Attempts {
			return false
		}
		has := after.Pins != nil && slices.Contains(after.Pins.Holders, holder)
		return has != unpin && len(withoutPin(after, holder)) <= len(withoutPin(before, holder))
	}, err
}

// withoutPin is who else pins a future.
func withoutPin(r *layout.Row, holder string) (others []string) {
	if r.Pins != nil {
		others = slices.DeleteFunc(slices.Clone(r.Pins.Holders), func(h string) bool { return h == holder })
	}
	return others
}

// isPinned reports whether a future was pinned other than by a session, which may have
// ended.
func (m *Machine) isPinned(r *layout.Row) bool {
	return r.Pins != nil && slices.Contains(r.Pins.Sessions, "")
}
