package quota_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/kv/sharing"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/quota"
	"github.com/futura-run/futura/internal/clock"
)

// TestLimitOfBytesOfASharedStore has the process that owns a store measure it, and another one obey its record, until
// that one takes over.
func TestLimitOfBytesOfASharedStore(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	base, err := os.MkdirTemp("", "fq") // short enough for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(base)) })
	virtual := clock.NewVirtual(time.UnixMilli(1_900_000_000_000))
	join := func() (*sharing.Database, *fdbmodel.Cluster) {
		db, err := sharing.Open(ctx, filepath.Join(base, "store"), sharing.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		c, err := fdbmodel.Open(ctx, db, "bytes", fdbmodel.Options{Clock: virtual})
		require.NoError(t, err)
		return db, c
	}
	store, owner := join()
	_, follower := join()
	_, err = quota.Of(owner).Set(ctx, func(l *quota.Limits) { l.Bytes = 20_000 })
	require.NoError(t, err)
	require.NoError(t, quota.Of(owner).Admit(ctx, 1))
	_, err = owner.Submit(ctx, []fdbmodel.Submission{{Spec: layout.Spec{Function: "go:f"}, Args: make([]byte, 30_000)}})
	require.NoError(t, err)
	virtual.Advance(quota.LimitsEvery)
	require.NoError(t, quota.Of(follower).WriteUsage(ctx))
	_, used, err := quota.Of(follower).Get(ctx)
	require.NoError(t, err)
	require.False(t, used.HasBytes, "who can't measure has written nothing")
	_, used, err = quota.Of(owner).Get(ctx)
	require.NoError(t, err)
	require.True(t, used.HasBytes)
	require.Greater(t, used.Bytes, int64(30_000))

	require.NoError(t, quota.Of(owner).WriteUsage(ctx))
	require.Eventually(t, func() bool {
		_, used, err := quota.Of(follower).Get(ctx)
		return err == nil && used.HasBytes
	}, time.Minute, time.Millisecond, "the record is written without a sync, so it is seen later")
	var limit *quota.LimitError
	for _, c := range []*fdbmodel.Cluster{owner, follower} {
		require.ErrorAs(t, quota.Of(c).Admit(ctx, 1), &limit)
		require.Equal(t, quota.LimitBytes, limit.Limit)
	}
	require.NoError(t, store.Close())
	virtual.Advance(time.Hour)
	require.ErrorAs(t, quota.Of(follower).Admit(ctx, 1), &limit, "the new owner measures")
}
