package workers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
)

// Parts implements taskcontext.Turn.
func (t *turn) Parts(ctx context.Context, ref actors.Ref, which actors.PartRange) ([]actors.Part, string, error) {
	t.mu.Lock()
	of := t.of(ref)
	if t.over || of == nil {
		t.mu.Unlock()
		return nil, "", errTurnOver
	}
	set, bare := maps.Clone(of.parts), of.bare
	t.mu.Unlock()
	if bare {
		return nil, "", nil
	}
	if part, is := set[which.Name]; is {
		return slices.DeleteFunc([]actors.Part{part}, func(p actors.Part) bool { return p.Removed }), "", nil
	}
	m := t.job.membership
	parts, next, same, err := actors.Of(m.worker.cluster).PartsFor(ctx, m.reg, &t.job.future, &of.state, which)
	if err != nil {
		return nil, "", unread(fmt.Errorf("the parts of actor %s can't be read: %w", ref, err))
	}
	if !same {
		t.mu.Lock()
		t.versions++
		t.mu.Unlock()
	}
	if which.Name == "" {
		parts, next = overlay(parts, next, set, which)
	}
	return parts, next, nil
}

// overlay returns a page of parts as the function has left them.
func overlay(page []actors.Part, next string, set map[string]actors.Part, which actors.PartRange,
) ([]actors.Part, string) {
	page = slices.DeleteFunc(page, func(p actors.Part) bool { _, is := set[p.Name]; return is })
	for name, p := range set {
		if !p.Removed && strings.HasPrefix(name, which.Prefix) && name > which.After && (next == "" || name <= next) {
			page = append(page, p)
		}
	}
	slices.SortFunc(page, func(a, b actors.Part) int { return strings.Compare(a.Name, b.Name) })
	if limit := which.Bound(); len(page) > limit {
		page, next = page[:limit], page[limit-1].Name
	}
	return page, next
}

// DeleteParts implements taskcontext.Turn.
func (t *turn) DeleteParts(ref actors.Ref) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.of(ref)
	if t.over || of == nil {
		return errTurnOver
	}
	of.bare = true
	return nil
}

// SetPart implements taskcontext.Turn.
func (t *turn) SetPart(ref actors.Ref, part actors.Part) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.of(ref)
	if t.over || of == nil {
		return errTurnOver
	}
	if err := part.Check(ref); err != nil {
		return Permanent(err)
	}
	if of.bare {
		return Permanent(fmt.Errorf("part %s of actor %s after Delete in the same turn, which removes all: change it "+
			"before, or leave out Delete", part.Name, ref))
	}
	if of.parts == nil {
		of.parts = map[string]actors.Part{}
	}
	if _, again := of.parts[part.Name]; !again {
		if t.written++; t.written > actors.MaxTurnParts {
			return Permanent(fmt.Errorf("%w: a turn that writes more than %d parts of actors: have it send the rest to a call "+
				"of its own", fdbmodel.ErrTooLarge, actors.MaxTurnParts))
		}
	}
	of.parts[part.Name] = part
	return nil
}
