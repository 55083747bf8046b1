package fdbmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// TestWaitsForAWorker asks futures how long they had waited for one.
func TestWaitsForAWorker(t *testing.T) {
	t.Parallel()
	submitted := time.UnixMilli(1000)
	waited := func(change func(*fdbmodel.ClaimedFuture)) (time.Duration, bool) {
		c := fdbmodel.ClaimedFuture{Spec: &layout.Spec{SubmittedAt: layout.Millis(submitted)}}
		change(&c)
		return c.Waited(submitted.Add(time.Second))
	}
	wait, known := waited(func(*fdbmodel.ClaimedFuture) {})
	require.True(t, known)
	require.Equal(t, time.Second, wait)
	wait, known = waited(func(c *fdbmodel.ClaimedFuture) { c.Spec.SubmittedAt += 9999 }) // by another clock
	require.True(t, known)
	require.Zero(t, wait)
	for _, change := range []func(*fdbmodel.ClaimedFuture){
		func(c *fdbmodel.ClaimedFuture) { c.Spec.Later = true },
		func(c *fdbmodel.ClaimedFuture) { c.Spec.Inputs = layout.PackIDs([]layout.ID{{1}}) },
		func(c *fdbmodel.ClaimedFuture) { c.Spec.Owner = "g" },
		func(c *fdbmodel.ClaimedFuture) { c.Spec.Lane = layout.Lane{Kind: "k", Key: "y"} },
		func(c *fdbmodel.ClaimedFuture) { c.Attempts.Failed = 1 },
		func(c *fdbmodel.ClaimedFuture) { c.Attempts.Crashes = 1 },
		func(c *fdbmodel.ClaimedFuture) { c.Attempts.Rejected = 1 },
		func(c *fdbmodel.ClaimedFuture) { c.Attempts.Rebuilt = 1 },
		func(c *fdbmodel.ClaimedFuture) { c.Attempts.Snoozed = 1 },
		func(c *fdbmodel.ClaimedFuture) { c.Attempts.Lifted = true },
	} {
		_, known := waited(change)
		require.False(t, known)
	}
	_, known = (&fdbmodel.ClaimedFuture{Spec: &layout.Spec{}}).Waited(time.Time{})
	require.False(t, known)
}
