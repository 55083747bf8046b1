package forks_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/edges"
	"github.com/futura-run/futura/fdbmodel/forks"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/promises"
)

// TestInputsOfForks forks futures whose inputs are there, and are gone.
func TestInputsOfForks(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	input := s.Submit()
	f := s.Claim(s.Worker)[0]
	realize(s, &f)
	id := failed(s, func(sub *fdbmodel.Submission) { sub.Inputs = []layout.ID{input} }, "charge")
	other := failed(s, plain, "charge")
	made := fork(s, forks.Request{Source: id})
	row, err := s.C.Get(s.Ctx, made)
	require.NoError(t, err)
	require.Equal(t, []layout.ID{input}, layout.UnpackIDs(row.Spec.Inputs))
	f = s.Claim(s.Worker)[0]
	realize(s, &f)
	require.NoError(t, s.C.Discard(s.Ctx, input))
	both, err := forks.Of(s.C).Make(s.Ctx, []forks.Request{{Source: id}, {Source: other}})
	require.NoError(t, err)
	require.ErrorIs(t, both[0].Err, layout.ErrBadSpec)
	require.ErrorContains(t, both[0].Err, input.String())
	require.NoError(t, both[1].Err, "it is made without the one that can't be")
	s.RequireSound()
}

// withManyInputs makes a cancelled future whose inputs are a list beside its spec. All but the last, which is a
// promise, are over.
func withManyInputs(s *modeltest.Stage) (id layout.ID, inputs []layout.ID) {
	for range layout.MaxInputsInSpec + 6 {
		inputs = append(inputs, s.Submit())
	}
	for claimed := s.Claim(s.Worker); len(claimed) > 0; claimed = s.Claim(s.Worker) {
		for i := range claimed {
			realize(s, &claimed[i])
		}
	}
	promise, err := promises.Of(s.C).Make(s.Ctx, fdbmodel.Submission{})
	require.NoError(s.T, err)
	inputs = append(inputs, promise.ID)
	id = s.Submit(func(sub *fdbmodel.Submission) { sub.Inputs = inputs })
	_, _, err = s.C.Cancel(s.Ctx, id, "")
	require.NoError(s.T, err)
	source, err := s.C.Get(s.Ctx, id)
	require.NoError(s.T, err)
	require.NotNil(s.T, source.Spec.InputsRef)
	return id, inputs
}

// requireInputs checks the inputs of a future that waits for them.
func requireInputs(s *modeltest.Stage, id layout.ID, want []layout.ID) {
	row, err := s.C.Get(s.Ctx, id)
	require.NoError(s.T, err)
	require.Equal(s.T, layout.Blocked, row.State())
	list, err := edges.Of(s.C).Inputs(s.Ctx, id, row.Spec)
	require.NoError(s.T, err)
	require.Equal(s.T, want, list)
}

// TestAForkWithManyInputs lets the source and its list go before the fork has run.
func TestAForkWithManyInputs(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id, inputs := withManyInputs(s)
	made := fork(s, forks.Request{Source: id, Name: "again", From: forks.FromStart()})
	sweep(s)
	require.NoError(t, s.C.Discard(s.Ctx, id))
	requireInputs(s, made, inputs)
	resolve := func() {
		for more := true; more; {
			var err error
			_, more, err = s.C.ResolveEdges(s.Ctx)
			require.NoError(t, err)
		}
		s.RequireSound()
	}
	resolve()
	require.Empty(t, s.Claim(s.Worker), "it waits for the promise")
	require.Error(t, s.C.Discard(s.Ctx, inputs[0]), "the fork is yet to use it")
	_, err := promises.Of(s.C).Resolve(s.Ctx, inputs[len(inputs)-1], promises.Value{Bytes: []byte("1"),
		Codec: layout.CodecJSON})
	require.NoError(t, err)
	resolve()
	f := s.Claim(s.Worker)[0]
	require.Equal(t, made, f.ID)
	realize(s, &f)
	s.RequireSound()
}
