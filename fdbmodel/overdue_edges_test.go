package fdbmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/faultkv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
)

// TestOverdueFuturesInParts: each counts once, whatever becomes of a commit, and a janitor
// comes back at once for the rest.
func TestOverdueFuturesInParts(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	var id layout.ID
	for range 65 {
		id = s.Submit(expires(s, time.Second), func(sub *fdbmodel.Submission) {
			sub.NotBefore = s.Clock.Now().Add(time.Hour)
		})
	}
	s.Clock.Advance(time.Second)
	s.Faults.FailNext(faultkv.UnknownLost, func(tag string) bool { return tag == "futura-overdue" })
	for _, want := range []int{64, 1} {
		ended, next, err := maintenance.Of(s.C).EndOverdue(s.Ctx)
		require.NoError(t, err)
		require.Equal(t, want, ended)
		require.Equal(t, want == 64, !next.IsZero() && !next.After(s.Clock.Now()))
	}
	row, err := s.C.Get(s.Ctx, id)
	require.NoError(t, err)
	require.Zero(t, row.Attempts.Due, "it is due no more")
}

// TestOverdueFuturesThatRun are looked at once, and have their attempt on record when
// that fails too late for another one.
func TestOverdueFuturesThatRun(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	id := s.Submit(deadline(s, time.Second))
	f := s.Claim(s.Worker)
	s.Clock.Advance(2 * time.Second)
	ended, _, err := maintenance.Of(s.C).EndOverdue(s.Ctx)
	require.NoError(t, err)
	require.Zero(t, ended)
	require.Zero(t, limitKeys(s), "its worker ends it")
	failed := &layout.Exception{Kind: layout.KindError, Message: "why"}
	s.Finish(s.Worker, fdbmodel.Completion{Future: &f[0], Exception: failed})
	require.Contains(t, failureOf(s, id).Message, "attempt 1 failed")
	row, err := s.C.Get(s.Ctx, id)
	require.NoError(t, err)
	require.Equal(t, 1, row.Attempt())
	require.Zero(t, row.Attempts.Due)
}
