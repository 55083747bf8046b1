package inspect_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

func TestExplainTime(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	said := func(id layout.ID) string {
		e, err := inspect.Explain(s.Ctx, s.C, id)
		require.NoError(t, err)
		return e.Text
	}
	id := s.Submit(func(sub *fdbmodel.Submission) {
		sub.Spec.ExpiresAt = layout.Millis(s.Clock.Now().Add(time.Minute))
		sub.Spec.Deadline = layout.Millis(s.Clock.Now().Add(time.Hour))
	})
	require.Contains(t, said(id), "It fails as expired if it still waits at 2030-03-17T17:47:40Z.")
	require.Contains(t, said(id), "by its deadline, 2030-03-17T18:46:40Z")
	f := s.Claim(s.Worker)
	require.NotContains(t, said(id), "expired")
	require.Contains(t, said(id), "by its deadline")
	wait := time.Second
	s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Snooze: &wait})
	require.Contains(t, said(id), "because its function sleeps or asked to be run again later.")
	s.Clock.Advance(time.Minute)
	_, _, err := maintenance.Of(s.C).EndOverdue(s.Ctx)
	require.NoError(t, err)
	require.Contains(t, said(id), "failed for good (expired")
	require.NotContains(t, said(id), "deadline")
	require.NoError(t, s.C.Retry(s.Ctx, id))
	f = s.Claim(s.Worker)
	require.Len(t, f, 1)
	s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Snooze: &wait})
	require.Contains(t, said(id), "because its function sleeps or asked to be run again later.", "no attempt has failed")
}

// TestExplainASleepAfterADeath does not have a dead worker for the only reason.
func TestExplainASleepAfterADeath(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	s.Claim(s.Worker)
	s.LoseWorker()
	if s.State(id) == layout.Delayed {
		s.Clock.Advance(time.Hour)
		_, _, err := maintenance.Of(s.C).PromoteDue(s.Ctx)
		require.NoError(t, err)
	}
	f := s.Claim(s.Worker)
	require.Len(t, f, 1)
	wait := time.Hour
	s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Snooze: &wait})
	e, err := inspect.Explain(s.Ctx, s.C, id)
	require.NoError(t, err)
	require.Contains(t, e.Text, "because its function sleeps or asked to be run again later, or worker ")
	require.Contains(t, e.Text, " died while it held it.")
}
