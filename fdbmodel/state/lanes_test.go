package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/state"
)

// TestStateGridOfLanes covers every pair of state and event of a future in a lane, which
// steps aside or does not: where it is in line, and where it has a slot.
func TestStateGridOfLanes(t *testing.T) {
	t.Parallel()
	const line, slot, none = "line", "slot", "none"
	where := func(row *layout.Row) string {
		switch {
		case row.InLine() && row.HasSlot():
			return "both"
		case row.InLine():
			return line
		case row.HasSlot():
			return slot
		}
		return none
	}
	for _, aside := range []bool{false, true} {
		for _, s := range layout.States() {
			for _, had := range []string{line, slot, none} {
				row := gridRow(s)
				spec := *row.Spec
				spec.Lane, spec.Aside = layout.Lane{Kind: "k", Key: "y"}, aside
				if s == layout.Claimed { // its inputs may be lost
					spec.Inputs = layout.PackIDs([]layout.ID{{1}})
				}
				row.Spec, row.Attempts.Slot = &spec, had == slot && s == layout.Delayed
				if had == line {
					row.Line = &layout.LineRecord{Order: 1}
				}
				if where(&row) != had || had == line && s != layout.Ready || aside && row.Attempts.Slot {
					continue // there is no such future
				}
				for _, e := range state.Events() {
					after, outcome := state.Next(row, gridEvent(e, gridToken))
					want := had
					switch to := after.State(); {
					case outcome != state.Applied:
					case to.Terminal():
						want = none
					case to == layout.Ready && (had == none || e == state.EventAdmit):
						want = map[string]string{none: line, line: slot, slot: slot}[had]
					case to == layout.Delayed:
						want = map[bool]string{true: none, false: had}[aside || had == none]
					case to == layout.Blocked:
						want = none
					}
					require.Equal(t, want, where(&after), "%v %s %v, aside %t: %v", s, had, e, aside, outcome)
					require.True(t, !after.Attempts.Slot || after.HasSlot(), "%v %s %v, aside %t: %v", s, had, e, aside, outcome)
					if had == line && e == state.EventClaim {
						require.Equal(t, state.Refused, outcome, "nobody claims what is in line")
					}
				}
			}
		}
	}
}
