package lanes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestReplacesWhatGetsInLine sends a future with a result that takes the name of one which that result makes ready: it
// has no place in line yet, and can't be taken out of it. The attempt fails, and the lane counts what it has admitted.
func TestReplacesWhatGetsInLine(t *testing.T) {
	t.Parallel()
	s := newLaneStage(t, layout.LaneKind{Width: 1})
	unique := &fdbmodel.Unique{Key: "k", OnConflict: fdbmodel.ConflictReplace}
	input := s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.MaxRetries = 0 })
	user := s.submit("x", func(sub *fdbmodel.Submission) { sub.Unique, sub.Inputs = unique, []layout.ID{input} })
	f := s.Claim(s.Worker)[0]
	sent, err := s.C.Prepare(s.Ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f"}, Unique: unique}})
	require.NoError(t, err)
	done := modeltest.Realize(&f)
	done.Beside = &fdbmodel.Beside{Submits: sent}
	require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, done))
	s.C.ResolveMarked(s.Ctx)
	s.check()
	row, err := s.C.Get(s.Ctx, input)
	require.NoError(t, err)
	require.Equal(t, layout.Failed, row.State())
	require.Contains(t, row.Exception.Message, "it gets in line for its lane at the same time and is not replaced")
	require.Equal(t, layout.Failed, s.State(user), "with its input")
}
