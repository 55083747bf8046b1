package fdbmodel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestWhatFinishTells of what it ended, and refuses.
func TestWhatFinishTells(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	for range 3 {
		s.Submit()
	}
	f := s.Claim(s.Worker)
	require.Len(t, f, 3)
	_, err := s.Worker.Finish(s.Ctx, []fdbmodel.Completion{{Future: &f[0], Exception: &layout.Exception{
		Stdout: make([]byte, fdbmodel.MaxResultInline+1)}}})
	require.ErrorIs(t, err, fdbmodel.ErrTooLarge)
	_, _, err = s.C.Cancel(s.Ctx, f[1].ID, "")
	require.NoError(t, err)
	done := []fdbmodel.Completion{{Future: &f[0], Exception: &layout.Exception{Kind: layout.KindError}},
		{Future: &f[1], Relinquish: true}, realize(&f[2])}
	_, err = s.Worker.Finish(s.Ctx, done)
	require.NoError(t, err)
	require.Equal(t, layout.Delayed, done[0].After.State)
	require.True(t, done[0].After.Due.After(s.Clock.Now()))
	require.True(t, done[1].After.Cancelled)
	require.Equal(t, layout.Realized, done[2].After.State)
}

// TestAClaimEndsOnce however many completions of it come together: the first counts.
func TestAClaimEndsOnce(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	s.Submit()
	f := s.Claim(s.Worker)
	require.Len(t, f, 1)
	again := f[0]
	failed := fdbmodel.Completion{Future: &again, Exception: &layout.Exception{Kind: layout.KindError}}
	outcomes, err := s.Worker.Finish(s.Ctx, []fdbmodel.Completion{realize(&f[0]), failed})
	require.NoError(t, err)
	require.Equal(t, fdbmodel.Lost, outcomes[1])
	require.Equal(t, layout.Realized, s.State(f[0].ID))
	require.EqualValues(t, 1, s.Counted(layout.Realized))
	require.Zero(t, s.Counted(layout.Delayed))
	s.RequireSound()
}
