package fdbmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/fit"
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
	require.NoError(t, fit.Require(s.Ctx, s.C, specs))
	s.Submit()
	require.Len(t, s.Claim(large), 1)
	modeltest.DeclareDead(t, s.C, large.ID())
	members, err := s.C.Workers(s.Ctx)
	require.NoError(t, err)
	require.Len(t, members, 2, "it is still listed")
	err = fit.Require(s.Ctx, s.C, specs)
	require.ErrorIs(t, err, layout.ErrUnfit)
}

// TestLabelsThatNoWorkerHas has a future require a label of none of the workers.
func TestLabelsThatNoWorkerHas(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	for _, labels := range []map[string]string{{"zone": "a"}, {"zone": "a", "disk": "ssd"}} {
		info := s.Info()
		info.Address, info.Labels = "", labels
		_, err := s.C.Register(s.Ctx, info)
		require.NoError(t, err)
	}
	var specs []layout.Spec
	for _, labels := range []map[string]string{{"zone": "a"}, {"zone": "a", "disk": "ssd"}, {"zone": "b"}} {
		specs = append(specs, layout.Spec{Function: "go:f", Requirements: layout.Requirements{Labels: labels}})
	}
	require.ErrorContains(t, fit.Require(s.Ctx, s.C, specs),
		"No worker that knows its function has the labels zone=b; "+
			"they have address=10.0.0.1:1, disk=ssd, zone=a. Start one with them.")
	require.NoError(t, fit.Require(s.Ctx, s.C, specs[:2]))
}

// TestWhatMustBeNearAndCanRunNowhere has the only holder of an object be too small: a
// submit that asks is refused, and what was submitted ends after the stated time.
func TestWhatMustBeNearAndCanRunNowhere(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	big := s.Object()
	s.EndAll(modeltest.KeepObject)
	info := s.Info()
	info.Address, info.Capacity = "", layout.Resources{Slots: 9, CPU: 9}
	large, err := s.C.Register(s.Ctx, info)
	require.NoError(t, err)
	spec := layout.Spec{Function: "go:f", Near: big, MustBeNear: true, Requirements: layout.Requirements{CPU: 5}}
	require.ErrorContains(t, fit.Require(s.Ctx, s.C, []layout.Spec{spec}),
		"no such worker is that large; one has 0 millicores")
	spec.Near = layout.ID{9}
	require.NoError(t, fit.Require(s.Ctx, s.C, []layout.Spec{spec}), "nobody has it yet")
	id := s.Submit(func(sub *fdbmodel.Submission) {
		sub.Spec.Near, sub.Spec.MustBeNear, sub.Spec.Requirements.CPU = big, true, 5
	})
	row, err := s.C.Get(s.Ctx, id)
	require.NoError(t, err)
	require.True(t, row.Attempts.Unplaceable)
	require.Empty(t, s.Claim(large))
	var unschedulable fit.Unschedulable
	for range 10 {
		s.Clock.Advance(30 * time.Second)
		_, _, err := fit.EndInfeasible(s.Ctx, s.C, &unschedulable)
		require.NoError(t, err)
	}
	row, err = s.C.Get(s.Ctx, id)
	require.NoError(t, err)
	require.Equal(t, layout.Failed, row.State())
	require.Equal(t, layout.KindInfeasible, row.Exception.Kind)
	require.Contains(t, row.Exception.Message, "It must be near the result of future "+big.String())
}
