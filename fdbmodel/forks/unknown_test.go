package forks_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/forks"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestUnknownResultsOfForks is TestUnknownResults for forks.
func TestUnknownResultsOfForks(t *testing.T) {
	t.Parallel()
	once := func(s *modeltest.Stage, strike func(), r forks.Request) {
		strike()
		made := forked(s, r)
		s.Faults.Flush()
		require.NoError(s.T, made.Err)
		require.False(s.T, made.Existed, "this call has made it")
		all, _, err := forks.Of(s.C).List(s.Ctx, r.Source, layout.ID{}, 0)
		require.NoError(s.T, err)
		require.Len(s.T, all, 1)
		require.Equal(s.T, []string{"charge=charge"}, stepsOf(s, made.ID))
		require.Equal(s.T, int64(1), s.Counted(layout.Ready))
		s.RequireSound()
	}
	modeltest.PlayUnknown(t, map[string]func(s *modeltest.Stage, strike func()){
		"futura-fork of one future": func(s *modeltest.Stage, strike func()) {
			once(s, strike, forks.Request{Source: failed(s, plain, "charge")})
		},
		"futura-fork beside one that exists": func(s *modeltest.Stage, strike func()) {
			requests := []forks.Request{{Source: failed(s, plain, "charge"), Name: "fix"},
				{Source: failed(s, plain, "charge"), Name: "fix"}}
			fork(s, requests[0])
			strike()
			made, err := forks.Of(s.C).Make(s.Ctx, requests)
			require.NoError(s.T, err)
			s.Faults.Flush()
			require.True(s.T, made[0].Existed)
			require.False(s.T, made[1].Existed, "this call has made it")
		},
		"futura-fork with a name": func(s *modeltest.Stage, strike func()) {
			once(s, strike, forks.Request{Source: failed(s, plain, "charge"), Name: "fix"})
		},
		"futura-fork with many inputs": func(s *modeltest.Stage, strike func()) {
			id, inputs := withManyInputs(s)
			strike()
			made := forked(s, forks.Request{Source: id, Name: "again", From: forks.FromStart()})
			s.Faults.Flush()
			require.NoError(s.T, made.Err)
			require.False(s.T, made.Existed, "this call has made it")
			requireInputs(s, made.ID, inputs)
			s.RequireSound()
		},
	})
}

func countKeys(s *modeltest.Stage, subspace string) (n int) {
	require.NoError(s.T, s.C.EachKey(s.Ctx, s.C.Keys().All(), func(item kv.KeyValue) error {
		if strings.Contains(string(item.Key), "\x02"+subspace+"\x00") {
			n++
		}
		return nil
	}))
	return n
}
