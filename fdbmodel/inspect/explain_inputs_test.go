package inspect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestExplainOfARemovedInput tells no one to retry what fails again, and what helps instead.
func TestExplainOfARemovedInput(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	keyed := func(sub *fdbmodel.Submission) { sub.Key = "input" }
	input := s.Submit(keyed)
	user := s.Submit(func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{input} })
	last := s.Submit(func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{user} })
	says := func(id layout.ID, text, not string) {
		t.Helper()
		e, err := inspect.Explain(s.Ctx, s.C, id)
		require.NoError(t, err)
		require.Contains(t, e.Text, text)
		require.NotContains(t, e.Text, not)
	}
	_, _, err := s.C.Cancel(s.Ctx, input, "")
	require.NoError(t, err)
	s.C.ResolveMarked(s.Ctx)
	require.Equal(t, layout.Failed, s.State(last))
	says(user, "Future "+input.String()+" failed first", "does not exist")

	require.NoError(t, s.C.Discard(s.Ctx, input))
	gone := "input " + input.String() + " does not exist: a retry fails again"
	says(user, "Its "+gone, "by hand")
	says(last, "Future "+user.String()+" failed first, and its "+gone, "by hand")

	require.NoError(t, s.C.Retry(s.Ctx, user))
	s.C.ResolveMarked(s.Ctx)
	says(user, "input "+input.String()+" does not exist: it was removed, or never submitted", "submit it first")

	require.Equal(t, input, s.Submit(keyed))
	says(user, "Retry it by hand", "a retry fails")
	require.NoError(t, s.C.Retry(s.Ctx, user))
	s.C.ResolveMarked(s.Ctx)
	require.Equal(t, layout.Blocked, s.State(user))
	s.RequireSound()
}
