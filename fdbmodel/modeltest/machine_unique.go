package modeltest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/names"
)

// uniqueKeys is how many unique keys the machine uses.
const uniqueKeys = 3

// drawUnique makes some futures unique, in all ways there are.
func (m *Machine) drawUnique(s *fdbmodel.Submission) {
	if s.Spec.Owner != "" || m.random.IntN(3) > 0 {
		return
	}
	conflicts := []fdbmodel.Conflict{fdbmodel.ConflictRefuse, fdbmodel.ConflictReturn, fdbmodel.ConflictReplace}
	s.Unique = &fdbmodel.Unique{
		Key:        fmt.Sprint("u", m.random.IntN(uniqueKeys)),
		Until:      []layout.UniqueUntil{layout.UntilEnd, layout.UntilEnd, layout.UntilClaim}[m.random.IntN(3)],
		OnConflict: conflicts[m.random.IntN(len(conflicts))],
	}
	switch m.random.IntN(4) {
	case 0:
		s.Unique.For = time.Duration(1+m.random.IntN(3000)) * time.Millisecond
	case 1:
		s.Unique.Key = "for ever"
		s.Unique.Until = layout.UntilEver
	}
}

// isReplaced reports whether a future was cancelled because a new one takes its name. made says that the same operation
// may have made it.
func isReplaced(before, after *layout.Row, subs []fdbmodel.Submission, made bool) bool {
	if after == nil || after.Spec.Unique == nil || before != nil && (layout.PlaceOf(before) == nil || before.HasBegun()) ||
		after.State() != layout.Failed || after.Exception.Kind != layout.KindCancelled {
		return false
	}
	if before == nil && !made { // by another part of the same transaction
		return false
	}
	for i := range subs {
		u := subs[i].Unique
		if u != nil && u.OnConflict == fdbmodel.ConflictReplace &&
			fdbmodel.UniqueNameOf(&subs[i]) == after.Spec.Unique.Name {
			return true
		}
	}
	return false
}

// refusedAsNotUnique checks who is said to have a name.
func (m *Machine) refusedAsNotUnique(err error) bool {
	var refused *fdbmodel.NotUniqueError
	if !errors.As(err, &refused) {
		return false
	}
	row := m.Rows[refused.ID]
	switch {
	case len(m.loose) > 0 || refused.Until == layout.UntilEver || refused.FreeAt.After(m.Clock.Now()):
	case row == nil && refused.State != 0 && !refused.State.Terminal(): // submitted before it in the same call
	case row == nil || row.State().Terminal() || row.Spec.Unique == nil:
		m.fail("a name is said to be that of %s: %s", refused.ID, digest(row))
	}
	return true
}

// verifyUnique requires that no two futures with one name are to end, but for those
// that gave it up when they were claimed, and those that run again.
func (m *Machine) verifyUnique() {
	has := map[layout.UniqueName]layout.ID{}
	for id, row := range m.Rows {
		u := row.Spec.Unique
		if u == nil || u.Until == layout.UntilClaim || row.State().Terminal() || row.Attempts.Rebuilt > 0 {
			continue
		}
		if other, taken := has[u.Name]; taken {
			m.fail("futures %s and %s have one name: %s, %s", id, other, digest(row), digest(m.Rows[other]))
		}
		has[u.Name] = id
	}
}

// free frees names whose time has passed, or releases one.
func (m *Machine) free(ctx context.Context) (change, error) {
	if m.random.IntN(2) == 0 {
		n, _, err := names.Of(m.C).Free(ctx)
		m.logf("free %d: %v", n, err)
		return none, err
	}
	name := fdbmodel.UniqueNameOf(&fdbmodel.Submission{Unique: &fdbmodel.Unique{Key: "for ever"}})
	holder, err := names.Of(m.C).Release(ctx, name)
	m.logf("release: %+v %v", holder, err)
	if errors.Is(err, fdbmodel.ErrNotFound) || errors.Is(err, fdbmodel.ErrTransition) {
		err = nil
	}
	return none, err
}

// verifyFreed requires that at the end all names are free but those for ever.
func (m *Machine) verifyFreed(ctx context.Context) {
	m.Clock.Advance(time.Hour)
	for n := 1; n > 0; {
		var err error
		n, _, err = names.Of(m.C).Free(ctx)
		m.require(err)
	}
	m.verify(none)
	for n := range uniqueKeys {
		u := &fdbmodel.Unique{Key: fmt.Sprint("u", n)}
		if holder, err := names.Of(m.C).Holder(ctx, fdbmodel.UniqueNameOf(&fdbmodel.Submission{Unique: u})); err == nil {
			row := m.Rows[holder.ID]
			if (row == nil || row.State().Terminal()) && !holder.FreeAt.After(m.Clock.Now()) {
				m.fail("%v, at the end", holder)
			}
		}
	}
}
