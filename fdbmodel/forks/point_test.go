package forks_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/forks"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestTextOfAFork says where forks went on.
func TestTextOfAFork(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]layout.Fork{
		"from the start":                   {},
		"at step charge":                   {Step: "charge", Copied: 1, After: "reserve"},
		"after step reserve":               {Copied: 1, After: "reserve"},
		"after step mail, the last of 3":   {Copied: 3, After: "mail"},
		"from the start, with 2 given":     {Set: 2},
		"after step reserve, with 1 given": {Copied: 1, After: "reserve", Set: 1},
	} {
		require.Equal(t, want, forks.Text(&of))
	}
}

// TestAnUnknownStepIsToldTheKnownOnes names some of many.
func TestAnUnknownStepIsToldTheKnownOnes(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	for n, last := range map[int]string{10: `"s10"; a step`, 12: `"s10", and 2 more; a step`} {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("s%02d", i+1))
		}
		made := forked(s, forks.Request{Source: failed(s, plain, names...), From: forks.FromStep("none")})
		require.ErrorContains(t, made.Err, last)
		require.ErrorContains(t, made.Err, `"s01", "s02"`)
	}
}

// TestAForkTakesAsManyValuesAsItMay gives a fork each value that it may have.
func TestAForkTakesAsManyValuesAsItMay(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	r := forks.Request{Source: failed(s, plain, "charge")}
	for i := range forks.MaxSet {
		r.Set = append(r.Set, forks.Value{Step: fmt.Sprint(i), JSON: []byte("1")})
	}
	require.Len(t, stepsOf(s, fork(s, r)), 1+forks.MaxSet)
	s.RequireSound()
}
