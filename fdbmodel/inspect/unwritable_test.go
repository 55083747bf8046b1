package inspect_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
	"github.com/futura-run/futura/internal/faultdisk"
)

// TestUnwritableThroughAnotherProcess whose disk is full, and gets room.
func TestUnwritableThroughAnotherProcess(t *testing.T) {
	t.Parallel()
	ctx, disk := context.Background(), faultdisk.New()
	open := func() *embedded.Store {
		s, err := embedded.Open(ctx, "store", embedded.Options{FS: disk})
		require.NoError(t, err)
		return s
	}
	own := open()
	_, err := fdbmodel.Open(ctx, own, "c", fdbmodel.Options{})
	require.NoError(t, err)
	require.NoError(t, own.Close())
	disk.SetSpace(0)
	own = open()
	at := filepath.Join(t.TempDir(), "s")
	listener, err := remote.ListenUnix(at)
	require.NoError(t, err)
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- remote.Serve(serving, listener, own, remote.ServerOptions{}) }()
	db, err := remote.Open(ctx, remote.Address{Network: "unix", Target: at}, remote.Options{})
	require.NoError(t, err)
	c, err := fdbmodel.Open(ctx, db, "c", fdbmodel.Options{Existing: true})
	require.NoError(t, err)
	for _, full := range []bool{true, false} {
		why, err := inspect.Unwritable(ctx, c)
		require.NoError(t, err)
		if full {
			require.ErrorIs(t, why, kv.ErrReadOnly)
			require.ErrorContains(t, why, "free some space")
		} else {
			require.NoError(t, why)
		}
		disk.SetSpace(-1)
	}
	require.NoError(t, db.Close())
	stop()
	require.NoError(t, <-served)
	require.NoError(t, own.Close())
	_, err = inspect.Unwritable(ctx, c)
	require.ErrorIs(t, err, kv.ErrClosed)
}
