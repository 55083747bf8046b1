//go:build !fdb

package head_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
)

// killItems is how many items heads are killed over in the short run.
const killItems = 1000

// sharedStore returns an empty store, and the address at which other processes
// open it.
func sharedStore(t *testing.T) (kv.Database, string) {
	db := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	dir, err := os.MkdirTemp("", "futura-head-") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	socket := filepath.Join(dir, "s")
	listener, err := remote.ListenUnix(socket)
	require.NoError(t, err)
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- remote.Serve(serving, listener, db, remote.ServerOptions{}) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-served)
	})
	return remote.Share(db), "remote:unix:" + socket
}
