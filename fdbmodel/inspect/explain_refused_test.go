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

// TestExplainSaysWhoPassesAFutureOver puts a future back, until the backoff is over.
func TestExplainSaysWhoPassesAFutureOver(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit(func(sub *fdbmodel.Submission) {
		sub.Spec.Backoff = layout.Backoff{Base: time.Minute, Max: time.Minute}
	})
	f := s.Claim(s.Worker)
	_, err := s.Worker.Heartbeat(s.Ctx, layout.Heartbeat{Free: s.Worker.Info().Capacity})
	require.NoError(t, err)
	s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Reject: true})
	e, err := inspect.Explain(s.Ctx, s.C, id)
	require.NoError(t, err)
	require.Equal(t, inspect.ReasonPassedOver, e.Reason)
	require.Contains(t, e.Text, "by worker "+string(s.Worker.ID())+", which rejected it at 17:46:40.")
	s.Clock.Advance(2 * time.Minute)
	e, err = inspect.Explain(s.Ctx, s.C, id)
	require.NoError(t, err)
	require.Equal(t, inspect.ReasonAboutToMove, e.Reason)
	require.NotContains(t, e.Text, "rejected it")
}
