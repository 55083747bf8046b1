package inspect_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestExplainOfCallsThatWaitForTheirTurn says how many calls are before one, and which of them runs.
func TestExplainOfCallsThatWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	alice := actors.Ref{Type: "account", Key: "alice/1"}
	require.NoError(t, lanes.Of(s.C).EnsureKind(s.Ctx, actors.LaneKind(alice.Type), layout.LaneKind{Width: 1}))
	call := func(key string) layout.ID {
		return s.Submit(func(sub *fdbmodel.Submission) {
			sub.Spec.Lane = actors.Ref{Type: alice.Type, Key: key}.Lane()
			sub.Spec.MaxRetries = 3
		})
	}
	why := func(id layout.ID) string {
		e, err := inspect.Explain(s.Ctx, s.C, id)
		require.NoError(t, err)
		require.Equal(t, inspect.ReasonInLine, e.Reason, e.Text)
		return e.Text
	}
	var ids []layout.ID
	call("bob")
	for range 4 {
		ids = append(ids, call(alice.Key))
	}
	call("carol")
	const turn = "It waits for its turn on actor account/alice/1: "
	require.Equal(t, fmt.Sprintf("%sno call is before it in line, and call %s (f) has its turn and waits for a worker: "+
		"futura explain %[2]s.", turn, ids[0]), why(ids[1]))
	var running fdbmodel.ClaimedFuture
	for _, f := range s.Claim(s.Worker) {
		if f.ID == ids[0] {
			running = f
		}
	}
	require.Equal(t, fmt.Sprintf("%s2 calls are before it in line, and call %s (f) runs now, on worker %s. Ahead: %s, %s.",
		turn, ids[0], s.Worker.ID(), ids[1], ids[2]), why(ids[3]))
	s.Finish(s.Worker, fdbmodel.Completion{Future: &running, Exception: &layout.Exception{Kind: layout.KindError}})
	require.Equal(t, fmt.Sprintf("%s1 call is before it in line, and call %s (f) has its turn and waits for its next "+
		"attempt: futura explain %[2]s. Ahead: %s.", turn, ids[0], ids[1]), why(ids[2]))
	require.NoError(t, lanes.Of(s.C).Pause(s.Ctx, alice.Lane(), true))
	require.Contains(t, why(ids[2]), `The lane is paused: futura lane resume actor.account "alice/1" ends that.`)
}
