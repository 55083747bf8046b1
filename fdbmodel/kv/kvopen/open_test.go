package kvopen_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
)

func TestOpenRefusesBadNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"":                          "it is empty",
		"memory":                    "a colon is missing",
		"embedded":                  "a colon is missing",
		"redis:x":                   "unknown kind of store",
		"./data":                    "unknown kind of store",
		"memory:x":                  "takes nothing after it",
		"memory:?sync=off":          `memory: has no parameter "sync"`,
		"embedded:":                 "a directory is missing",
		"embedded:?sync=off":        "a directory is missing",
		"embedded:x?sync=maybe":     "sync must be on or off",
		"embedded:x?sync=on&sync=1": "sync is given more than once",
		"embedded:x?sync=":          "sync must be on or off",
		"embedded:x?memory=2GB":     "memory must be 16MiB to 1024TiB, such as 512MiB or 2GiB",
		"embedded:x?memory=":        "memory must be 16MiB",
		"embedded:x?memory=15MiB":   "memory must be 16MiB",
		"embedded:x?memory=-1GiB":   "memory must be 16MiB",
		"embedded:x?memory=1025TiB": "memory must be 16MiB",
		"embedded:x?memory=99999999999999999999KiB": "memory must be 16MiB",
		"embedded:x?fsync=off":                      `embedded: has no parameter "fsync"`,
		"embedded:x?%zz":                            "invalid URL escape",
		"fdb:x?sync=off":                            `fdb: has no parameter "sync"`,
		"fdb://host":                                "not a URL",
		"remote":                                    "a colon is missing",
		"remote:":                                   "use unix:PATH or tcp:HOST:PORT",
		"remote:unix:":                              "has 0 bytes",
		"remote:tcp:host":                           "use tcp:HOST:PORT",
		"remote:unix:x?sync=off":                    `remote: has no parameter "sync"`,
		"remote:tcp:h:1?tls=maybe":                  "tls must be on or off",
		"remote:tcp:h:1?tls=off&ca=x":               "ca needs tls",
	} {
		_, err := kvopen.Open(t.Context(), name, kvopen.Options{})
		require.ErrorIs(t, err, kvopen.ErrBadName, name)
		require.ErrorContains(t, err, want, name)
		require.ErrorContains(t, err, "use memory:, embedded:DIR", name)
	}
}

func TestOpenMemory(t *testing.T) {
	t.Parallel()
	db, err := kvopen.Open(t.Context(), "memory:", kvopen.Options{})
	require.NoError(t, err)
	write(t, db)
	require.Equal(t, "value", read(t, db))
	require.NoError(t, db.Close())

	db, err = kvopen.Open(t.Context(), "memory:", kvopen.Options{})
	require.NoError(t, err)
	require.Empty(t, read(t, db))
	require.NoError(t, db.Close())
}

func TestOpenEmbeddedKeepsData(t *testing.T) {
	t.Parallel()
	for _, parameters := range []string{"", "?sync=on", "?sync=off", "?memory=16MiB"} {
		name := "embedded:" + filepath.Join(t.TempDir(), "store") + parameters
		db, err := kvopen.Open(t.Context(), name, kvopen.Options{})
		require.NoError(t, err, name)
		write(t, db)

		_, err = kvopen.Open(t.Context(), name, kvopen.Options{})
		require.ErrorIs(t, err, kv.ErrStoreInUse, name)
		require.NoError(t, db.Close(), name)

		db, err = kvopen.Open(t.Context(), name, kvopen.Options{})
		require.NoError(t, err, name)
		require.Equal(t, "value", read(t, db), name)
		require.NoError(t, db.Close(), name)
	}
}

// TestOpenThatEndsSaysWhatItWaitedFor when its context ends before the wait for a store that is in use.
func TestOpenThatEndsSaysWhatItWaitedFor(t *testing.T) {
	t.Parallel()
	name := "embedded:" + filepath.Join(t.TempDir(), "store")
	db, err := kvopen.Open(t.Context(), name, kvopen.Options{})
	require.NoError(t, err)
	defer db.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = kvopen.Open(ctx, name, kvopen.Options{InUseWait: time.Hour})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, kv.ErrStoreInUse)
}

func write(t *testing.T, db kv.Database) {
	_, err := kv.Transact(t.Context(), db, kv.Retry{}, func(tx kv.Attempt) error {
		tx.Set([]byte("key"), []byte("value"))
		return nil
	})
	require.NoError(t, err)
}

func read(t *testing.T, db kv.Database) (value string) {
	_, err := kv.Transact(t.Context(), db, kv.Retry{}, func(tx kv.Attempt) error {
		stored, err := tx.Get([]byte("key")).Wait(context.Background())
		value = string(stored)
		return err
	})
	require.NoError(t, err)
	return value
}
