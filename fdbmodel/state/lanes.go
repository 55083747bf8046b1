package state

import "github.com/futura-run/futura/fdbmodel/layout"

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
