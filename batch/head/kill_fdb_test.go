//go:build fdb

package head_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/fdbkv"
	"github.com/futura-run/futura/internal/storetest"
)

// killItems is how many items heads are killed over in the short run.
const killItems = 500

// sharedStore returns a store, in which no test but one has anything, and the
// address at which other processes open it.
func sharedStore(t *testing.T) (kv.Database, string) {
	file := storetest.Server().ClusterFile(t)
	db, err := fdbkv.Open(t.Context(), file, fdbkv.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db, "fdb:" + file
}
