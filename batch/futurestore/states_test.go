package futurestore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestStatesOfItemsAndFutures is the table of the package's page, over every
// state of a future.
func TestStatesOfItemsAndFutures(t *testing.T) {
	t.Parallel()
	token := layout.Token{Worker: "w", Sequence: 1}
	claim := &layout.Claim{Token: token}
	failed := layout.Attempts{Failed: 1}
	seen := map[layout.State]bool{}
	for _, c := range []struct {
		name   string
		row    layout.Row
		future layout.State
		item   batch.Status
	}{
		{"made", layout.Row{}, layout.Ready, batch.Created},
		{"assigned", layout.Row{Attempts: layout.Attempts{Assigned: "w"}}, layout.Ready, batch.InProgress},
		{"assigned again", layout.Row{Attempts: layout.Attempts{Assigned: "w", Failed: 2}}, layout.Ready,
			batch.InProgress},
		{"claimed", layout.Row{Claim: claim}, layout.Claimed, batch.InProgress},
		{"claimed after a failure", layout.Row{Claim: claim, Attempts: failed, Exception: &layout.Exception{}},
			layout.Claimed, batch.InProgress},
		{"lost with its worker", layout.Row{Attempts: layout.Attempts{Crashes: 1}}, layout.Ready, batch.Created},
		{"waits after a failure", layout.Row{Attempts: layout.Attempts{Failed: 1, Due: 7}}, layout.Delayed,
			batch.Failed},
		{"due after a failure", layout.Row{Attempts: failed}, layout.Ready, batch.Failed},
		{"reject", layout.Row{Attempts: layout.Attempts{Due: 7}}, layout.Delayed, batch.Created},
		{"done", layout.Row{Claim: claim, Result: &layout.Result{Token: token}}, layout.Realized, batch.Done},
		{"no attempts left, or cancelled", layout.Row{Exception: &layout.Exception{Final: true}}, layout.Failed,
			batch.PermanentlyFailed},
	} {
		require.Equal(t, c.future, c.row.State(), c.name)
		require.Equal(t, c.item, statusOf(&c.row), c.name)
		seen[c.future] = true
	}
	for _, s := range layout.States() {
		// An item takes no results of others.
		require.Equal(t, s != layout.Blocked, seen[s], "%v", s)
	}
}

// TestItemsOfAChunkRunOneByOne unless the batch asks for more.
func TestItemsOfAChunkRunOneByOne(t *testing.T) {
	t.Parallel()
	template := batch.Template{FunctionID: "go:f"}
	require.Equal(t, 1, Submission(&template, "go:f", nil).Spec.Parallel)
	template.Config.Concurrency = 3
	require.Equal(t, 3, Submission(&template, "go:f", nil).Spec.Parallel)
}
