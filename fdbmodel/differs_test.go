package fdbmodel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestRepeatedSubmitSaysWhatDiffers submits under one key what is not the same.
func TestRepeatedSubmitSaysWhatDiffers(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	submit := func(f fdbmodel.Submission) (id layout.ID, err error) {
		answers, err := s.C.Submit(s.Ctx, []fdbmodel.Submission{f})
		if err == nil {
			id = answers[0].ID
		}
		return id, err
	}
	first := func() fdbmodel.Submission {
		return fdbmodel.Submission{Spec: layout.Spec{Function: "go:f"}, Key: "k", Args: make([]byte, 5000)}
	}
	id, err := submit(first())
	require.NoError(t, err)
	for differs, change := range map[string]func(*fdbmodel.Submission){
		"function": func(s *fdbmodel.Submission) { s.Spec.Function = "go:g" },
		"codec":    func(s *fdbmodel.Submission) { s.Spec.Codec = layout.CodecJSON },
		"queue":    func(s *fdbmodel.Submission) { s.Spec.Queue = "q" },
		"argv":     func(s *fdbmodel.Submission) { s.Spec.Argv = []string{"a"} },
		"environment": func(s *fdbmodel.Submission) {
			s.Spec.Env = map[string]string{"A": "b"}
		},
		"arguments": func(s *fdbmodel.Submission) { s.Args[4999] = 1 },
	} {
		f := first()
		change(&f)
		_, err := submit(f)
		require.ErrorIs(t, err, fdbmodel.ErrIDInUse)
		require.ErrorContains(t, err, "with other "+differs)
	}
	f := first()
	f.Spec.Priority, f.Spec.MaxRetries = 9, 9
	again, err := submit(f)
	require.NoError(t, err)
	require.Equal(t, id, again)
}
