package layout_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/futura-run/futura/fdbmodel/layout"
)

func TestStateNames(t *testing.T) {
	t.Parallel()
	states := layout.States()
	for i, s := range states {
		require.EqualValues(t, i+1, s)
		parsed, err := layout.ParseState(s.String())
		require.NoError(t, err)
		require.Equal(t, s, parsed)
	}
	for _, bad := range []string{"", "Ready", "state(0)"} {
		_, err := layout.ParseState(bad)
		require.ErrorIs(t, err, layout.ErrBadName)
		require.ErrorContains(t, err, "use "+layout.AnyOf(states))
	}
	require.Equal(t, "ready or failed", layout.AnyOf([]layout.State{layout.Ready, layout.Failed}))
	require.Equal(t, "ready, claimed or failed",
		layout.AnyOf([]layout.State{layout.Ready, layout.Claimed, layout.Failed}))
}

// TestPlaceOfEveryRow checks that a future is claimed, over, or waits in a place,
// and that workers find it in the pool if that place is the ready index.
func TestPlaceOfEveryRow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		token := layout.Token{Worker: "w", Sequence: 1}
		row := layout.Row{Spec: &layout.Spec{Owner: rapid.SampledFrom([]string{"", "o"}).Draw(t, "owner")}}
		row.Attempts.Due = rapid.Int64Range(0, 1).Draw(t, "due")
		row.Attempts.Assigned = rapid.SampledFrom([]layout.WorkerID{"", "w"}).Draw(t, "assigned")
		if rapid.Bool().Draw(t, "claimed") {
			row.Claim = &layout.Claim{Token: token}
		}
		if rapid.Bool().Draw(t, "has a result") {
			row.Result = &layout.Result{Token: token}
		}
		if rapid.Bool().Draw(t, "has failed") {
			row.Exception = &layout.Exception{Final: rapid.Bool().Draw(t, "final")}
		}
		s, place := row.State(), layout.PlaceOf(&row)
		require.Equal(t, s != layout.Claimed && !s.Terminal(), place != nil, "%v", s)
		require.Equal(t, place != nil && place.Kind == layout.PlaceReady, row.InPool())
		if row.InPool() {
			require.Equal(t, layout.Row{Spec: row.Spec, Result: row.Result, Exception: row.Exception}, row)
			require.False(t, row.Spec.Held())
		}
	})
}

// TestOnlyAResultOfTheClaimCounts has results of earlier claims, of the same
// worker and of another.
func TestOnlyAResultOfTheClaimCounts(t *testing.T) {
	t.Parallel()
	claim := &layout.Claim{Token: layout.Token{Worker: "w", Sequence: 2}}
	for token, want := range map[layout.Token]layout.State{
		claim.Token:                      layout.Realized,
		{Worker: "w", Sequence: 1}:       layout.Claimed,
		{Worker: "another", Sequence: 2}: layout.Claimed,
	} {
		row := layout.Row{Spec: &layout.Spec{}, Claim: claim, Result: &layout.Result{Token: token}}
		require.Equal(t, want, row.State(), token)
		row.Claim = nil
		require.Equal(t, layout.Ready, row.State(), "no claim has it")
	}
}
