package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/state"
)

// TestStateConditionsOfTime ends claims of futures whose time is over, or that were
// cancelled.
func TestStateConditionsOfTime(t *testing.T) {
	t.Parallel()
	for _, kind := range []state.EventKind{
		state.EventFail, state.EventRelinquish, state.EventReject, state.EventSnooze, state.EventExpire,
		state.EventReap, state.EventBlock,
	} {
		row, event := gridRow(layout.Claimed), gridEvent(kind, gridToken)
		row.Spec.Inputs = layout.PackIDs([]layout.ID{{1}})
		row.Spec.Deadline = layout.Millis(event.Now)
		after, outcome := state.Next(row, event)
		require.Equal(t, state.Applied, outcome, kind)
		require.Equal(t, layout.Failed, after.State(), kind)
		require.Equal(t, layout.KindDeadline, after.Exception.Kind, kind)
		row.Attempts.Lifted = true
		after, _ = state.Next(row, event)
		require.NotEqual(t, layout.Failed, after.State(), kind)
		row.Attempts.Lifted, row.Cancel = false, &layout.CancelRequest{}
		after, _ = state.Next(row, event)
		require.Equal(t, layout.KindCancelled, after.Exception.Kind, kind)
	}
}
