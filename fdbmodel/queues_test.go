package fdbmodel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestAQueueThatIsNamedTwice is served once: each wake of an idle worker takes it from all its queues.
func TestAQueueThatIsNamedTwice(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	info := s.Info()
	info.Address, info.Queues = "", []string{"b", "a", "b", "a"}
	w, err := s.C.Register(s.Ctx, info)
	require.NoError(t, err)
	hint := w.RequestHint(fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 9}, Max: 9})
	defer hint.Cancel()
	of := fdbmodel.Submission{Spec: layout.Spec{Function: "go:f", Queue: "b"}}
	_, err = s.C.Submit(s.Ctx, []fdbmodel.Submission{of, of, of})
	require.NoError(t, err)
	require.Len(t, hint.C(), 1)
	require.Equal(t, []string{"b", "a"}, w.Info().Queues)
}
