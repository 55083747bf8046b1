//go:build fdb

package fdbkv_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest"
)

// programs is how many random programs are run on the server.
func programs() int {
	if os.Getenv("FUTURA_LONG") == "1" {
		return 10_000
	}
	return 1_000
}

func openShared(t testing.TB) kv.Database { return open(t) }

// TestConformance also compares the server with the reference store.
func TestConformance(t *testing.T) {
	t.Parallel()
	kvtest.Run(t, kvtest.Options{New: openShared, Programs: programs()})
}

func TestEmbeddedEqualsFoundationDB(t *testing.T) {
	t.Parallel()
	server.ClusterFile(t)
	openEmbedded := func(t testing.TB) kv.Database {
		store := embedded.OpenMemory(embedded.Options{})
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		return store
	}
	kvtest.ComparePrograms(t, openEmbedded, openShared, programs(), kvtest.FirstSeed())
}
