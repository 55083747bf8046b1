package fdbmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
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

// TestManyEndsOfOneTransaction are listed in as many entries as it takes: of what stays when its retention has passed,
// one holds ever more.
func TestManyEndsOfOneTransaction(t *testing.T) {
	t.Parallel()
	s := modeltest.NewStage(t)
	ids, err := s.C.DrawIDs(kv.MaxValueSize/16 + 1)
	require.NoError(t, err)
	_, err = s.C.Change(s.Ctx, kv.Options{}, func(_ kv.Attempt, w *fdbmodel.WriteSet) error {
		for _, id := range ids {
			w.Keep(id)
		}
		return nil
	})
	require.NoError(t, err)
	var listed []layout.ID
	for shard := range s.C.Config().Shards {
		require.NoError(t, s.C.EachKey(s.Ctx, kv.Prefix(s.C.Keys().DoneOf(shard)), func(item kv.KeyValue) error {
			var entry layout.DoneEntry
			err := layout.Decode(item.Key, item.Value, &entry)
			listed = append(listed, layout.UnpackIDs(entry.IDs)...)
			return err
		}))
	}
	require.Equal(t, ids, listed)
}
