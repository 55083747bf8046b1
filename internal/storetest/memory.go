//go:build !fdb

package storetest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/remote"
)

// OnServer reports whether the stores lie on a server, where an operation takes
// milliseconds.
const OnServer = false

// Main runs the tests of a package, checks that no goroutine is left, and ends
// the process.
func Main(m *testing.M) { goleak.VerifyTestMain(m) }

// New returns an empty store, which is closed at the end of the test at the
// latest.
func New(t testing.TB) kv.Database {
	db := open(t)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return db
}

// open opens a store in memory. With FUTURA_TEST_COLD=1 it lies on a disk instead, and leaves
// all rows to its tables every few transactions.
func open(t testing.TB) kv.Database {
	if os.Getenv("FUTURA_TEST_COLD") != "1" {
		return embedded.OpenMemory(embedded.Options{})
	}
	db, err := embedded.Open(t.Context(), "store", embedded.Options{FS: vfs.NewMem(), Inline: true, Memory: 1})
	require.NoError(t, err)
	return Checkpointed(db)
}

// Shared returns an empty store, and the address at which other processes open
// it until the test ends.
func Shared(t testing.TB) (kv.Database, string) {
	db := New(t)
	dir, err := os.MkdirTemp("", "futura-shared-") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	socket := filepath.Join(dir, "s")
	listener, err := remote.ListenUnix(socket)
	require.NoError(t, err)
	Background(t, func(ctx context.Context) error { return remote.Serve(ctx, listener, db, remote.ServerOptions{}) })
	return remote.Share(db), "remote:unix:" + socket
}
