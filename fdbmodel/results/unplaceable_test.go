package results_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/results"
)

// largeWorker registers a worker that has room for more than the stage's has.
func largeWorker(s *modeltest.Stage) *fdbmodel.Registration {
	info := s.Info()
	info.Address, info.Capacity.CPU = "", 20
	large, err := s.C.Register(s.Ctx, info)
	require.NoError(s.T, err)
	return large
}

// large has a future need more room than the stage's worker has.
func large(sub *fdbmodel.Submission) { sub.Spec.Requirements.CPU = 5 }

// boundTo has a future run where the result of another one is.
func boundTo(id layout.ID) func(*fdbmodel.Submission) {
	return func(sub *fdbmodel.Submission) { sub.Spec.Near, sub.Spec.MustBeNear = id, true }
}

// replace walks over the whole index and returns how many futures it found a place for.
func replace(s *modeltest.Stage) (total, calls int) {
	for walk := (results.UnplaceableWalk{}); ; {
		n, next, err := results.Of(s.C).ReplaceUnplaceable(s.Ctx, &walk)
		require.NoError(s.T, err)
		require.LessOrEqual(s.T, n, 64)
		calls++
		if total += n; next.IsZero() {
			return total, calls
		}
	}
}

// claimAll claims what a worker can run.
func claimAll(s *modeltest.Stage, r *fdbmodel.Registration) []fdbmodel.ClaimedFuture {
	answer, err := r.Claim(s.Ctx, fdbmodel.ClaimRequest{Free: r.Info().Capacity, Max: 8})
	require.NoError(s.T, err)
	return answer.Futures
}

// TestWhatMustBeNearIsReplaced has futures that the only holder of an object could not
// run. A look changes nothing while that is so. Each of these has it find a worker: one
// that can takes a copy, or the object, or makes it again where it was lost.
func TestWhatMustBeNearIsReplaced(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *modeltest.Stage, object layout.ID, able *fdbmodel.Registration){
		"clone": func(s *modeltest.Stage, object layout.ID, able *fdbmodel.Registration) {
			require.NoError(t, results.Of(s.C).AddCopy(s.Ctx, able.ID(), object, s.Token(object), false))
		},
		"transfer": func(s *modeltest.Stage, object layout.ID, able *fdbmodel.Registration) {
			require.NoError(t, results.Of(s.C).AddCopy(s.Ctx, able.ID(), object, s.Token(object), true))
		},
		"death": func(s *modeltest.Stage, _ layout.ID, _ *fdbmodel.Registration) {
			_, err := s.C.ForceReap(s.Ctx, s.Worker.ID())
			require.NoError(t, err)
		},
	} {
		s := modeltest.NewStage(t)
		able, object := largeWorker(s), s.Object()
		require.Equal(t, 1, s.EndAll(modeltest.KeepObject))
		ids := []layout.ID{s.Submit(boundTo(object), large), s.Submit(boundTo(object), large)}
		before, err := s.C.Get(s.Ctx, ids[0])
		require.NoError(t, err)
		require.True(t, before.Attempts.Unplaceable)
		n, _ := replace(s)
		require.Zero(t, n, name)
		same, err := s.C.Get(s.Ctx, ids[0])
		require.NoError(t, err)
		require.Equal(t, before, same, name)
		change(s, object, able)
		n, _ = replace(s)
		require.Equal(t, 2, n, name)
		if name == "death" {
			made := claimAll(s, able)
			require.Len(t, made, 1)
			require.Equal(t, object, made[0].ID)
			s.Finish(able, modeltest.KeepObject(&made[0]))
		}
		for _, id := range ids {
			row, err := s.C.Get(s.Ctx, id)
			require.NoError(t, err)
			require.Equal(t, layout.Ready, row.State())
			require.Equal(t, able.ID(), row.Attempts.Assigned)
			require.False(t, row.Attempts.Unplaceable)
		}
		require.Len(t, claimAll(s, able), 2, name)
		n, _ = replace(s)
		require.Zero(t, n, name)
		s.RequireSound()
	}
}

// TestTheSearchForUnplaceableIsBounded has more futures than one call looks at, of more
// classes, and counts.
func TestTheSearchForUnplaceableIsBounded(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	able, object := largeWorker(s), s.Object()
	require.Equal(t, 1, s.EndAll(modeltest.KeepObject))
	for i := range int64(100) {
		s.Submit(func(sub *fdbmodel.Submission) { sub.Spec.Requirements.CPU = i + 2 })
		s.Submit(boundTo(object), large)
	}
	n, _ := replace(s)
	require.Zero(t, n)
	require.NoError(t, results.Of(s.C).AddCopy(s.Ctx, able.ID(), object, s.Token(object), false))
	n, calls := replace(s)
	require.Equal(t, 100, n)
	require.Greater(t, calls, 1)
}
