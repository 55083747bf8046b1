package transfer_test

import (
	"context"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/mailbox"
	"github.com/futura-run/futura/fdbmodel/maintenance"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/transfer"
	"github.com/futura-run/futura/internal/clock"
)

// moveToYounger moves a population to a store of higher versions, and from there
// to one of lower ones.
func moveToYounger(t *testing.T, p *modeltest.Population, between func(old *fdbmodel.Cluster),
) (old, young *fdbmodel.Cluster) {
	ctx := context.Background()
	disk := vfs.NewMem()
	var aged *embedded.Store
	for range 4 {
		if aged != nil {
			require.NoError(t, aged.Close())
		}
		var err error
		aged, err = embedded.Open(ctx, "aged", embedded.Options{FS: disk})
		require.NoError(t, err)
		// An opening that writes raises the versions.
		require.NoError(t, aged.Checkpoint(ctx))
	}
	t.Cleanup(func() { require.NoError(t, aged.Close()) })
	db, model := modeltest.OpenMemory(t), fdbmodel.Options{Clock: p.C.Clock()}
	_, err := transfer.Migrate(ctx, p.DB, aged, "check", transfer.Options{Model: model})
	require.NoError(t, err)
	old, err = fdbmodel.Open(ctx, aged, "check", model)
	require.NoError(t, err)
	between(old)
	_, err = transfer.Migrate(ctx, aged, db, "check", transfer.Options{IgnoreLive: true, Model: model})
	require.NoError(t, err)
	young, err = fdbmodel.Open(ctx, db, "check", model)
	require.NoError(t, err)
	before, err := transfer.Checksum(ctx, old)
	require.NoError(t, err)
	after, err := transfer.Checksum(ctx, young)
	require.NoError(t, err)
	require.Equal(t, before, after)
	return old, young
}

// versionOf returns a store's present version.
func versionOf(t *testing.T, c *fdbmodel.Cluster) kv.Version {
	version, err := c.Database().Begin(kv.Options{}).ReadVersion(context.Background())
	require.NoError(t, err)
	return version
}

// finishAll runs all ready futures.
func finishAll(t *testing.T, c *fdbmodel.Cluster) {
	ctx := context.Background()
	w, err := c.Register(ctx, layout.WorkerInfo{Functions: []string{"go:f"}, Capacity: layout.Resources{Slots: 9}})
	require.NoError(t, err)
	for {
		answer, err := w.Claim(ctx, fdbmodel.ClaimRequest{Free: layout.Resources{Slots: 1}, Max: 1})
		require.NoError(t, err)
		if len(answer.Futures) == 0 {
			require.NoError(t, w.Leave(ctx))
			return
		}
		_, err = w.Finish(ctx, []fdbmodel.Completion{{Future: &answer.Futures[0],
			Result: &layout.Result{Value: []byte("v")}}})
		require.NoError(t, err)
	}
}

// TestMailAfterAMoveToAYoungerCluster continues a session in a store whose
// versions are lower than those that it has read.
func TestMailAfterAMoveToAYoungerCluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := modeltest.Populate(t)
	p.Leave(t)
	var box *mailbox.Mailbox
	var id layout.ID
	old, young := moveToYounger(t, p, func(old *fdbmodel.Cluster) {
		box = mailbox.Open(old, "s")
		require.NoError(t, box.Refresh(ctx))
		finishAll(t, old)
		notices, watch, err := box.Listen(ctx)
		require.NoError(t, err)
		watch.Cancel()
		require.NotEmpty(t, notices)
		require.NoError(t, box.Acknowledge(ctx))
		got, err := old.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f", Session: "s"}}})
		require.NoError(t, err)
		id = got[0].ID
	})
	require.Less(t, versionOf(t, young), versionOf(t, old))
	box.Cluster = young // its process has reached the other store
	finishAll(t, young)
	notices, watch, err := box.Listen(ctx)
	require.NoError(t, err)
	require.Empty(t, notices, "the mail lies before what was read in the old store")
	watch.Cancel()
	require.NoError(t, box.Refresh(ctx))
	notices, _, err = box.Listen(ctx)
	require.NoError(t, err)
	require.Len(t, notices, 1)
	require.Equal(t, id, notices[0].ID)
	require.NoError(t, box.Acknowledge(ctx))
	require.NoError(t, box.Refresh(ctx))
	notices, watch, err = box.Listen(ctx)
	require.NoError(t, err)
	require.Empty(t, notices)
	watch.Cancel()
}

// TestExpiryAfterAMoveToAYoungerCluster checks that old lists of finished
// futures come before new ones, although their versions in the old store were
// higher.
func TestExpiryAfterAMoveToAYoungerCluster(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := modeltest.Populate(t)
	virtual := p.C.Clock().(*clock.Virtual)
	p.Leave(t)
	old, to := moveToYounger(t, p, func(*fdbmodel.Cluster) {})
	require.Less(t, versionOf(t, to), versionOf(t, old))
	virtual.Advance(time.Hour)
	finishAll(t, to)
	virtual.Advance(to.Config().Retention - time.Minute)
	removed := 0
	for next := virtual.Now(); !next.IsZero() && !next.After(virtual.Now()); {
		n, later, err := maintenance.Of(to).ExpireDone(ctx)
		require.NoError(t, err)
		removed, next = removed+n, later
	}
	require.Equal(t, 4, removed, "those that finished before the move, and no others")
}
