package sharing_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv/remote"
	"github.com/futura-run/futura/fdbmodel/kv/sharing"
)

// connect uses a store from outside, under a name.
func connect(t *testing.T, db *sharing.Database, name string) *remote.Database {
	client, err := remote.Open(t.Context(), remote.Address{Network: "unix", Target: db.Socket()},
		remote.Options{Connection: name})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// TestAConnectionIsLostTwice has one come back after it was given up, and go again.
func TestAConnectionIsLostTwice(t *testing.T) {
	t.Parallel()
	owner := open(t, place(t), sharing.Options{})
	heard := hearing(owner)
	for range 2 {
		require.NoError(t, connect(t, owner, "again").Close())
		hears(t, heard, "again")
	}
}

// TestTheLockIsRemoved has somebody remove the file that locks a store: still nobody else opens it.
func TestTheLockIsRemoved(t *testing.T) {
	t.Parallel()
	dir := place(t)
	first := open(t, dir, sharing.Options{})
	require.NoError(t, os.Remove(filepath.Join(dir, "LOCK")))
	second := open(t, dir, sharing.Options{})
	put(t, second, "a")
	require.True(t, first.IsOwner())
	require.False(t, second.IsOwner())
	require.NoError(t, first.Close())
	put(t, second, "b")
	require.True(t, second.IsOwner())
}

// TestACopyIsAnotherStore copies the record of a store with its directory: the copy neither leads
// to the socket of the first nor takes it away.
func TestACopyIsAnotherStore(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"short", strings.Repeat("long", 40)} {
		dir := filepath.Join(place(t), name)
		first := open(t, dir, sharing.Options{})
		record, err := os.ReadFile(filepath.Join(dir, "sharing.json"))
		require.NoError(t, err)
		copied := filepath.Join(place(t), name)
		require.NoError(t, os.MkdirAll(copied, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(copied, "sharing.json"), record, 0o600))
		found, err := sharing.ReadRecord(copied)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(copied, "store.sock"), found.Socket)
		require.True(t, open(t, copied, sharing.Options{}).IsOwner())
		second := open(t, dir, sharing.Options{Wait: time.Millisecond})
		require.False(t, second.IsOwner(), "the socket of the first is there")
		require.Equal(t, first.Socket(), second.Socket())
	}
}
