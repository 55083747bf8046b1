package fdbmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestSubmitsThatTakeWhatEndsWithThem have the result of another future as their input that is realized in the same
// transaction.
func TestSubmitsThatTakeWhatEndsWithThem(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	input, sender := s.Submit(), s.Submit()
	claimed := s.Claim(s.Worker)
	require.Len(t, claimed, 2)
	sent, err := s.C.Prepare(s.Ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f"},
		Inputs: []layout.ID{input}}})
	require.NoError(t, err)
	completions := []fdbmodel.Completion{modeltest.Realize(&claimed[0]), modeltest.Realize(&claimed[1])}
	for i := range completions {
		if claimed[i].ID == sender {
			completions[i].Beside = &fdbmodel.Beside{Submits: sent}
		}
	}
	outcomes, err := s.Worker.Finish(s.Ctx, completions)
	require.NoError(t, err)
	require.Equal(t, []fdbmodel.Outcome{fdbmodel.Applied, fdbmodel.Applied}, outcomes)
	require.Equal(t, layout.Realized, s.State(sender))
	require.Equal(t, layout.Ready, s.State(sent[0].ID), "its input is there")
	s.RequireSound()
}

// TestSubmitsWithANameThatEndsWithThem are unique, and have the name of a future that is realized in the same
// transaction and keeps it.
func TestSubmitsWithANameThatEndsWithThem(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	unique := &fdbmodel.Unique{Key: "k", For: time.Hour}
	id := s.Submit(func(sub *fdbmodel.Submission) { sub.Unique = unique })
	f := s.Claim(s.Worker)[0]
	again := *unique
	again.OnConflict = fdbmodel.ConflictReturn
	sent, err := s.C.Prepare(s.Ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f"}, Unique: &again}})
	require.NoError(t, err)
	done := modeltest.Realize(&f)
	done.Beside = &fdbmodel.Beside{Submits: sent}
	require.Equal(t, fdbmodel.Applied, s.Finish(s.Worker, done))
	require.Equal(t, layout.Realized, s.State(id))
	_, err = s.C.Get(s.Ctx, sent[0].ID)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	s.RequireSound()
}
