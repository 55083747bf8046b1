package fdbmodel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestTheDeadFitNothing has a large worker die that still holds a claim, so that
// it is listed, beside a small one.
func TestTheDeadFitNothing(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	info := s.Info()
	info.Address, info.Capacity = "", layout.Resources{Slots: 1, GPU: 5}
	large, err := s.C.Register(s.Ctx, info)
	require.NoError(t, err)
	specs := []layout.Spec{{Function: "go:f", Requirements: layout.Requirements{GPU: 5}}}
	require.NoError(t, s.C.RequireFit(s.Ctx, specs))
	s.Submit()
	require.Len(t, s.Claim(large), 1)
	members, err := s.C.Workers(s.Ctx)
	require.NoError(t, err)
	for _, m := range members {
		if m.ID == large.ID() {
			dead, err := s.C.DeclareDead(s.Ctx, m.ID, m.Beat)
			require.NoError(t, err)
			require.True(t, dead)
		}
	}
	members, err = s.C.Workers(s.Ctx)
	require.NoError(t, err)
	require.Len(t, members, 2, "it is still listed")
	err = s.C.RequireFit(s.Ctx, specs)
	require.ErrorIs(t, err, layout.ErrUnfit)
}
