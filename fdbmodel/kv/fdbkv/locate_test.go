//go:build fdb

package fdbkv_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/fdbkv"
	"github.com/futura-run/futura/internal/fdbtest"
)

func TestLocate(t *testing.T) {
	t.Parallel()
	location, err := open(t).Locate(t.Context(), [][]byte{key(t, "a"), key(t, "b")})
	require.NoError(t, err)
	require.Len(t, location.Teams, 2)
	require.Len(t, location.Teams[0], 1)
	require.Equal(t, location.Teams[0], location.Teams[1])
	require.Equal(t, 1, location.Servers)

	_, err = open(t).Locate(t.Context(), [][]byte{{0xff}})
	require.ErrorIs(t, err, kv.ErrIllegalKey)
	closed := open(t)
	require.NoError(t, closed.Close())
	_, err = closed.Locate(t.Context(), nil)
	require.ErrorIs(t, err, kv.ErrClosed)
}

func TestLocateOnThreeServers(t *testing.T) {
	t.Parallel()
	server.ClusterFile(t)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	three, err := fdbtest.StartMany(ctx, 3)
	require.NoError(t, err)
	defer func() { require.NoError(t, three.Stop()) }()
	db, err := fdbkv.Open(ctx, three.ClusterFile(t), fdbkv.Options{ConnectTimeout: startTimeout})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	// The cluster recruits its third server for keys some time after it answers.
	require.Eventually(t, func() bool {
		location, err := db.Locate(ctx, [][]byte{key(t, "a")})
		require.NoError(t, err)
		require.Len(t, location.Teams[0], 2, "two copies of each key")
		return location.Servers == 3
	}, startTimeout, 50*time.Millisecond)
}
