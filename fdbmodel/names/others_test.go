package names_test

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// uniqueOther submits a unique future and brings it into a state.
func uniqueOther(s *modeltest.Stage, u fdbmodel.Unique, state layout.State) layout.ID {
	return uniqueBegun(s, u, state, false)
}

// uniqueBegun is uniqueOther for one that waits in its state after an attempt, if it has begun.
func uniqueBegun(s *modeltest.Stage, u fdbmodel.Unique, state layout.State, begun bool) layout.ID {
	input := s.Submit(func(sub *fdbmodel.Submission) { sub.NotBefore = s.Clock.Now().Add(24 * time.Hour) })
	id := s.Submit(unique(u), func(sub *fdbmodel.Submission) {
		switch state {
		case layout.Delayed:
			if !begun {
				sub.NotBefore = s.Clock.Now().Add(time.Hour)
			}
		case layout.Blocked:
			sub.Inputs = []layout.ID{input}
		}
	})
	if begun {
		f, later := s.Claim(s.Worker), time.Duration(0)
		require.Len(s.T, f, 1)
		end := fdbmodel.Completion{Future: &f[0], Exception: &layout.Exception{Kind: layout.KindError}, RetryIn: &later}
		if state == layout.Delayed {
			later = time.Hour
			end = fdbmodel.Completion{Future: &f[0], Snooze: &later}
		}
		s.Finish(s.Worker, end)
	}
	if slices.Contains([]layout.State{layout.Claimed, layout.Realized, layout.Failed, 0}, state) {
		f := s.Claim(s.Worker)
		require.Len(s.T, f, 1)
		switch state {
		case layout.Realized:
			s.Finish(s.Worker, modeltest.Realize(&f[0]))
		case layout.Failed, 0:
			s.Finish(s.Worker, failForGood(&f[0]))
		}
		if state == 0 {
			require.NoError(s.T, s.C.Discard(s.Ctx, id))
		}
	}
	require.Equal(s.T, state, s.State(id))
	return id
}
