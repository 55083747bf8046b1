package futurestore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel"
)

// TestStatesOfItemsAndFutures is the table of the package's page, over every
// state of a future.
func TestStatesOfItemsAndFutures(t *testing.T) {
	t.Parallel()
	token := fdbmodel.Token{Worker: "w", Sequence: 1}
	claim := &fdbmodel.Claim{Token: token}
	failed := fdbmodel.Attempts{Failed: 1}
	seen := map[fdbmodel.State]bool{}
	for _, c := range []struct {
		name   string
		row    fdbmodel.Row
		future fdbmodel.State
		item   batch.Status
	}{
		{"made", fdbmodel.Row{}, fdbmodel.Ready, batch.Created},
		{"assigned", fdbmodel.Row{Attempts: fdbmodel.Attempts{Assigned: "w"}}, fdbmodel.Ready, batch.InProgress},
		{"assigned again", fdbmodel.Row{Attempts: fdbmodel.Attempts{Assigned: "w", Failed: 2}}, fdbmodel.Ready,
			batch.InProgress},
		{"claimed", fdbmodel.Row{Claim: claim}, fdbmodel.Claimed, batch.InProgress},
		{"claimed after a failure", fdbmodel.Row{Claim: claim, Attempts: failed, Exception: &fdbmodel.Exception{}},
			fdbmodel.Claimed, batch.InProgress},
		{"lost with its worker", fdbmodel.Row{Attempts: fdbmodel.Attempts{Crashes: 1}}, fdbmodel.Ready, batch.Created},
		{"waits after a failure", fdbmodel.Row{Attempts: fdbmodel.Attempts{Failed: 1, Due: 7}}, fdbmodel.Delayed,
			batch.Failed},
		{"due after a failure", fdbmodel.Row{Attempts: failed}, fdbmodel.Ready, batch.Failed},
		{"put back", fdbmodel.Row{Attempts: fdbmodel.Attempts{Due: 7}}, fdbmodel.Delayed, batch.Created},
		{"done", fdbmodel.Row{Claim: claim, Result: &fdbmodel.Result{Token: token}}, fdbmodel.Realized, batch.Done},
		{"no attempts left, or cancelled", fdbmodel.Row{Exception: &fdbmodel.Exception{Final: true}}, fdbmodel.Failed,
			batch.PermanentlyFailed},
	} {
		require.Equal(t, c.future, c.row.State(), c.name)
		require.Equal(t, c.item, statusOf(&c.row), c.name)
		seen[c.future] = true
	}
	for _, s := range fdbmodel.States() {
		require.True(t, seen[s], "%v", s)
	}
}
