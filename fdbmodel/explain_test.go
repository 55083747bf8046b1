package fdbmodel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestExplainTellsOfSilence(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	id := s.submit()
	s.claim(s.worker)
	why := func() string {
		e, err := s.c.Explain(s.ctx, id)
		require.NoError(t, err)
		require.Equal(t, ReasonClaimed, e.Reason)
		return e.Text
	}
	s.clock.Advance(s.c.Config().DeadAfter)
	require.NotContains(t, why(), "sign of life")
	s.clock.Advance(45*time.Second - s.c.Config().DeadAfter)
	require.Contains(t, why(), "Its last sign of life is 45s old")
}

func TestExplainOfLongWaits(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for due, says := range map[time.Time]string{
		s.c.Now().Add(90 * time.Second):               "(1m30s from now).",
		time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC): "until 9999-12-31T00:00:00Z.",
	} {
		id := s.submit(func(sub *Submission) { sub.NotBefore = due })
		e, err := s.c.Explain(s.ctx, id)
		require.NoError(t, err)
		require.Contains(t, e.Text, says)
	}
}
