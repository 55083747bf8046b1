package actors_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestUnknownResultsOfActors is TestUnknownResults for actors.
func TestUnknownResultsOfActors(t *testing.T) {
	t.Parallel()
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-finish of a turn": func(s *modeltest.Stage, strike func()) {
			f := claim(s)
			beside, _, err := actors.Of(s.C).Turn(f, []actors.Change{{Read: read(s, "a"), Parts: []actors.Part{part("x", "1")}}})
			require.NoError(s.T, err)
			done := fdbmodel.Completion{Future: f, Result: &layout.Result{}, Beside: beside}
			prepared, err := s.C.Prepare(s.Ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f"}}})
			require.NoError(s.T, err)
			done.Beside.Submits = prepared
			strike()
			outcome := s.Finish(s.Worker, done)
			require.NotEqual(s.T, fdbmodel.Lost, outcome)
			s.Faults.Flush()
			require.Equal(s.T, layout.Realized, s.State(f.ID))
			require.Equal(s.T, layout.Ready, s.State(prepared[0].ID))
			require.Equal(s.T, int64(1), read(s, "a").Head.Version)
			require.Equal(s.T, "x=1", present(s, "a", actors.PartRange{}))
		},
		"futura-finish of a turn that leaves a small state": func(s *modeltest.Stage, strike func()) {
			resize(s, strike, actors.MaxInHead+1, 1)
		},
		"futura-finish of a turn that leaves a large state": func(s *modeltest.Stage, strike func()) {
			resize(s, strike, 1, actors.MaxInHead+1)
		},
		"futura-actor that is deleted": func(s *modeltest.Stage, strike func()) {
			set(s, "a", "1", part("x", "1"))
			strike()
			require.NoError(s.T, actors.Of(s.C).Delete(s.Ctx, ref("a")))
			s.Faults.Flush()
			a := read(s, "a")
			require.False(s.T, a.Exists())
			require.Empty(s.T, present(s, "a", actors.PartRange{}))
		},
	})
}

// resize has a turn make a state of one size one of another, with an unknown result.
func resize(s *modeltest.Stage, strike func(), from, to int) {
	of := func(size int) actors.Change { return actors.Change{Write: true, Value: make([]byte, size)} }
	turn(s, "a", of(from))
	strike()
	turn(s, "a", of(to))
	s.Faults.Flush()
	a := read(s, "a")
	require.Len(s.T, a.Value, to)
	require.Equal(s.T, int64(2), a.Head.Version)
	s.RequireSound()
}
