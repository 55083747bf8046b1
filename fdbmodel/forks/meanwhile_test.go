package forks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/forks"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/steps"
)

// TestWhatHappensMeanwhile has others change the source, and the fork, between the reads of a fork and its commit.
func TestWhatHappensMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(s *modeltest.Stage, r forks.Request)
		check     func(t *testing.T, s *modeltest.Stage, made forks.Made)
	}{
		"its source is removed": {
			func(s *modeltest.Stage, r forks.Request) { require.NoError(s.T, s.C.Discard(s.Ctx, r.Source)) },
			func(t *testing.T, s *modeltest.Stage, made forks.Made) {
				require.ErrorIs(t, made.Err, fdbmodel.ErrNotFound)
				require.Zero(t, countKeys(s, "forks"))
			},
		},
		"its source is retried": {
			func(s *modeltest.Stage, r forks.Request) { require.NoError(s.T, s.C.Retry(s.Ctx, r.Source)) },
			func(t *testing.T, _ *modeltest.Stage, made forks.Made) {
				require.ErrorIs(t, made.Err, fdbmodel.ErrTransition)
			},
		},
		"its large value is swept": {
			func(s *modeltest.Stage, _ forks.Request) {
				before := countKeys(s, "chunks")
				sweep(s)
				require.Less(s.T, countKeys(s, "chunks"), before)
			},
			func(t *testing.T, s *modeltest.Stage, made forks.Made) {
				require.NoError(t, made.Err)
				require.Len(t, stepsOf(s, made.ID)[0], len("large=")+100_000)
			},
		},
		"another process makes it": {
			func(s *modeltest.Stage, r forks.Request) { require.NoError(s.T, forked(s, r).Err) },
			func(t *testing.T, s *modeltest.Stage, made forks.Made) {
				require.NoError(t, made.Err)
				require.True(t, made.Existed)
				require.Equal(t, int64(1), s.Counted(layout.Ready))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewStage(t)
			id := s.Submit()
			f := s.Claim(s.Worker)[0]
			ref, err := steps.Of(s.C).Store(s.Ctx, id, f.Token, "large", make([]byte, 100_000))
			require.NoError(t, err)
			_, _, err = steps.Of(s.C).Write(s.Ctx, s.Worker, []steps.Entry{{Future: &f, Name: "large", First: true,
				Record: steps.Record{Token: f.Token, Number: 1, Attempt: 1, ValueRef: &ref, Size: ref.Size, At: 1}}})
			require.NoError(t, err)
			end(s, &f, &layout.Exception{Kind: layout.KindError})
			request := forks.Request{Source: id, Name: "fix"}
			beside := s.Interrupted("futura-fork", func() { c.meanwhile(s, request) })
			made, err := forks.Of(beside).Make(s.Ctx, []forks.Request{request})
			require.NoError(t, err)
			c.check(t, s, made[0])
			s.RequireSound()
		})
	}
}

// TestAnIDThatIsUsedAgainHasNoForks removes a source, and submits another future with its id.
func TestAnIDThatIsUsedAgainHasNoForks(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	again := func(sub *fdbmodel.Submission) { sub.ID = layout.ID{7} }
	id := failed(s, again, "charge")
	made := fork(s, forks.Request{Source: id})
	require.NoError(t, s.C.Discard(s.Ctx, id))
	s.Clock.Advance(time.Second)
	require.Equal(t, id, s.Submit(again))
	all, _, err := forks.Of(s.C).List(s.Ctx, id, layout.ID{}, 0)
	require.NoError(t, err)
	require.Empty(t, all)
	require.NotEqual(t, id, made)
	s.RequireSound()
}
