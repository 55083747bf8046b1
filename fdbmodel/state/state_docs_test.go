package state_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/state"
)

const stateMachinePage = "../../docs/reference/state_machine.md"

const stateMachineHead = `# State machine

Printed from the table in the code by ` + "`make generate`" + `; a test compares. The first row that fits a state, an
event and its condition counts. A pair that is not here is refused.

`

func TestDocsStateMachine(t *testing.T) {
	t.Parallel()
	want := stateMachineHead + state.TransitionTable()
	if *modeltest.Update {
		require.NoError(t, os.WriteFile(stateMachinePage, []byte(want), 0o644))
	}
	got, err := os.ReadFile(stateMachinePage)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run make generate")
}
