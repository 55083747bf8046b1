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
