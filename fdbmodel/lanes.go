package fdbmodel

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// checkLane checks the lane of a submission.
func (s *Submission) checkLane() error {
	spec := &s.Spec
	if spec.Lane.IsZero() {
		spec.Aside, spec.Member, spec.Bundle = false, false, false
		return nil
	}
	if err := spec.Lane.Check(); err != nil {
		return err
	}
	switch {
	case spec.Held():
		return fmt.Errorf("%w: lane %s: a future of a batch can't be in a lane", layout.ErrBadSpec, spec.Lane)
	case s.Assigned != "":
		return fmt.Errorf("%w: lane %s: an assigned future can't be in a lane", layout.ErrBadSpec, spec.Lane)
	case spec.Bundle:
		return fmt.Errorf("%w: lane %s: bundles are made by lanes", layout.ErrBadSpec, spec.Lane)
	case spec.MustBeNear:
		return fmt.Errorf("%w: lane %s: a future that must be near an object can't be in a lane", layout.ErrBadSpec,
			spec.Lane)
	}
	return nil
}

// followLane gives a future that has changed the place in line, or the slot, that its
// new state asks for: one that is ready without a slot gets in line, one that waits
// for a time or for inputs keeps its slot unless it steps aside, one that has ended
// has neither. Nor has one that waits for its inputs: they may have to run in the
// same lane.
func followLane(before, after *layout.Row) {
	if after.Spec == nil || after.Spec.Lane.IsZero() {
		return
	}
	had, slot := before.HasSlot(), false
	switch after.State() {
	case layout.Ready:
		if !had && before.Line == nil && !after.Spec.Bundle {
			after.Line = &layout.LineRecord{}
		}
	case layout.Delayed:
		slot = had && !after.Spec.Aside
		after.Line = nil
	default:
		after.Line = nil
	}
	after.Attempts.Slot = slot
	after.Attempts.Taken = after.Attempts.Taken && after.State() == layout.Claimed
}

// laneChange is what a transaction changes of one lane.
type laneChange struct {
	lane    layout.Lane
	slots   int // taken less freed
	called  int // bundles that have yet to take their members, more less fewer
	joining []joining
	pause   *bool  // pause or resume it
	sweep   bool   // the settings of its kind have changed
	due     []byte // the key that says that it is to be looked at, if that is why
}

// joining is a future that gets in line.
type joining struct {
	row *layout.Row
	// submitted says that whoever submits it wakes a worker for it.
	submitted bool
}

// lane returns the changes of a lane, which the transaction then looks at.
func (w *changes) lane(l layout.Lane) *laneChange {
	for _, c := range w.lanes {
		if c.lane == l {
			return c
		}
	}
	c := &laneChange{lane: l}
	w.lanes = append(w.lanes, c)
	return c
}

func (w *changes) join(row *layout.Row, submitted bool) {
	c := w.lane(row.Spec.Lane)
	c.joining = append(c.joining, joining{row, submitted})
}

// changeLane notes what a transition means for the lane of a future.
func (w *changes) changeLane(before, after *layout.Row) {
	if after.Spec.Lane.IsZero() {
		return
	}
	if before.Line == nil && after.Line != nil {
		w.join(after, false)
	}
	if had, has := before.IsCalled(), after.IsCalled(); had != has {
		change := w.lane(after.Spec.Lane)
		if change.called++; had {
			change.called -= 2
		}
	}
	if had, has := before.HasSlot(), after.HasSlot(); had != has {
		change := w.lane(after.Spec.Lane)
		if change.slots++; had {
			change.slots -= 2
		}
	}
}

// askKinds reads the kinds of lanes of submissions, and has each obey the settings that
// are its own from now on. It returns ErrNotFound for a kind that was not set.
func (w *changes) askKinds(ctx context.Context, subs []Submission) error {
	asked := map[string]kv.Pending[[]byte]{}
	for i := range subs {
		kind := subs[i].Spec.Lane.Kind
		if _, known := asked[kind]; kind != "" && !known {
			asked[kind] = w.tx.Get(w.keys.LaneKind(kind))
		}
	}
	for i := range subs {
		spec := &subs[i].Spec
		if spec.Lane.IsZero() {
			continue
		}
		k, err := w.kind(ctx, spec.Lane.Kind, asked[spec.Lane.Kind])
		if err != nil {
			return err
		}
		if !k.set {
			return fmt.Errorf("lane %s: kind %q: %w: set it first, as with futura lane set %s --width 1", spec.Lane,
				spec.Lane.Kind, ErrNotFound, spec.Lane.Kind)
		}
		spec.Aside, spec.Member = k.settings.Aside, k.settings.Bundle != ""
		if spec.Member && (spec.Function != k.settings.Bundle || spec.HasInputs()) {
			return fmt.Errorf("%w: lane %s: its futures run in bundles of the function %s: submit them with that function, and "+
				"without inputs", layout.ErrBadSpec, spec.Lane, k.settings.Bundle)
		}
	}
	return nil
}

// kind returns the settings of a kind. One that was removed while futures of it were
// still to get in line has the strictest ones.
func (w *changes) kind(ctx context.Context, name string, asked kv.Pending[[]byte]) (*kindState, error) {
	if k := w.kinds[name]; k != nil {
		return k, nil
	}
	k := &kindState{name: name, settings: layout.LaneKind{Width: 1}}
	value, err := asked.Wait(ctx)
	if err == nil && value != nil {
		k.set, err = true, layout.DecodeLaneKind(w.keys.LaneKind(name), value, &k.settings)
	}
	if err != nil {
		return nil, err
	}
	if w.kinds == nil {
		w.kinds = map[string]*kindState{}
	}
	w.kinds[name] = k
	return k, nil
}
