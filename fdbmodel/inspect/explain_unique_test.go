package inspect_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestExplainOfAUniqueFutureUntilAClaim that keeps its key for a period as well, before and after the claim.
func TestExplainOfAUniqueFutureUntilAClaim(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit(func(sub *fdbmodel.Submission) {
		sub.Unique = &fdbmodel.Unique{Key: "k", Until: layout.UntilClaim, For: time.Hour}
	})
	at := s.Clock.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	e, err := inspect.Explain(s.Ctx, s.C, id)
	require.NoError(t, err)
	require.Contains(t, e.Text, "is accepted until a worker claims it, and not before "+at)
	require.Len(t, s.Claim(s.Worker), 1)
	e, err = inspect.Explain(s.Ctx, s.C, id)
	require.NoError(t, err)
	require.Contains(t, e.Text, "is accepted until "+at)
}
