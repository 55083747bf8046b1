package forks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/forks"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/steps"
)

// TestManyForks makes more forks than one transaction takes, some of which can't be made, and some
// with more steps than fit with others.
func TestManyForks(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	var requests []forks.Request
	for i := range 120 {
		names := []string{"charge"}
		switch {
		case i%10 == 3:
			names = nil
		case i%40 == 5:
			for n := range 400 {
				names = append(names, fmt.Sprint("step ", n, strings.Repeat(" x", 80)))
			}
		}
		requests = append(requests, forks.Request{Source: failed(s, plain, names...), Name: "fix"})
	}
	made, err := forks.Of(s.C).Make(s.Ctx, requests)
	require.NoError(t, err)
	require.Len(t, made, len(requests))
	for i := range made {
		require.Equal(t, requests[i].Source, made[i].Source)
		if i%10 == 3 {
			require.ErrorIs(t, made[i].Err, forks.ErrNothingFailed)
			continue
		}
		require.NoError(t, made[i].Err)
		require.Len(t, stepsOf(s, made[i].ID), made[i].Fork.Copied)
	}
	preview, err := forks.Of(s.C).Preview(s.Ctx, requests)
	require.NoError(t, err)
	require.True(t, preview[0].Existed)
	s.RequireSound()
}

// TestManyLargeForks makes forks whose records are more together than one transaction takes.
func TestManyLargeForks(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	names := make([]string, 60)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	id := s.Submit()
	f := s.Claim(s.Worker)[0]
	recordAll(s, &f, strings.Repeat("v", steps.MaxInline), names...)
	end(s, &f, &layout.Exception{Kind: layout.KindError})
	requests := make([]forks.Request, 45)
	for i := range requests {
		requests[i] = forks.Request{Source: id, Name: fmt.Sprint("fix ", i)}
	}
	made, err := forks.Of(s.C).Make(s.Ctx, requests)
	require.NoError(t, err)
	require.Len(t, made, len(requests))
	for i := range made {
		require.NoError(t, made[i].Err)
		require.Equal(t, len(names), made[i].Fork.Copied)
	}
}

// TestOneForkThatIsRefusedKeepsNoOther forks futures of which one can't be read, and one has no room in its lane.
func TestOneForkThatIsRefusedKeepsNoOther(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	require.NoError(t, lanes.Of(s.C).SetKind(s.Ctx, "k", layout.LaneKind{MaxWaiting: 1}))
	inLane := func(sub *fdbmodel.Submission) { sub.Spec.Lane = layout.Lane{Kind: "k", Key: "x"} }
	full, damaged, good := failed(s, inLane, "charge"), failed(s, plain, "charge"), failed(s, plain, "charge")
	for range 2 {
		s.Submit(inLane)
	}
	key := s.C.Keys().Spec(damaged)
	whole := s.Read(key)
	s.Store(key, []byte{1})
	made, err := forks.Of(s.C).Make(s.Ctx, []forks.Request{{Source: full}, {Source: damaged}, {Source: good}})
	require.NoError(t, err)
	require.ErrorIs(t, made[0].Err, fdbmodel.ErrLaneFull)
	require.ErrorIs(t, made[1].Err, layout.ErrBadRecord)
	require.NoError(t, made[2].Err)
	s.Store(key, whole)
	s.RequireSound()
}

// TestAForkOfTooManySteps has more steps than a fork copies.
func TestAForkOfTooManySteps(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit()
	f := s.Claim(s.Worker)[0]
	const count = 2000
	for first := 0; first < count; first += steps.MaxWrite / 2 {
		var entries []steps.Entry
		for n := first; n < first+steps.MaxWrite/2; n++ {
			entries = append(entries, steps.Entry{Future: &f, Name: fmt.Sprint(n), First: n == 0, Record: steps.Record{
				Token: f.Token, Number: n + 1, Attempt: 1, Value: make([]byte, steps.MaxInline), Size: steps.MaxInline}})
		}
		_, _, err := steps.Of(s.C).Write(s.Ctx, s.Worker, entries)
		require.NoError(t, err)
	}
	end(s, &f, &layout.Exception{Kind: layout.KindError})
	refused := forked(s, forks.Request{Source: id})
	require.ErrorIs(t, refused.Err, fdbmodel.ErrTooLarge)
	_, err := s.C.Get(s.Ctx, refused.ID)
	require.ErrorIs(t, err, fdbmodel.ErrNotFound, "nothing was made")
	made := fork(s, forks.Request{Source: id, From: forks.FromStep("1700")})
	all, err := steps.Of(s.C).List(s.Ctx, made)
	require.NoError(t, err)
	require.Len(t, all, 1700)
}
