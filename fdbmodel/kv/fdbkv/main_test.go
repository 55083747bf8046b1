//go:build fdb

package fdbkv_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/fdbmodel/kv/fdbkv"
	"github.com/futura-run/futura/internal/fdbtest"
)

// server is the one that the tests of this package share, nil where there is
// none.
var server *fdbtest.Server

// Variables of processes of the tests' own, which need no server: of
// TestOpenAfterAnotherAPIVersion, and of TestTLS with the cluster file.
const (
	otherVersionVariable = "FUTURA_FDB_OTHER_VERSION"
	tlsVariable          = "FUTURA_FDB_TLS"
)

// startTimeout bounds the start of a cluster, and its first answer, on the busiest
// machine.
const startTimeout = 2 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(otherVersionVariable) != "" || os.Getenv(tlsVariable) != "" {
		os.Exit(m.Run())
	}
	fdbtest.Main(m, func(s *fdbtest.Server) { server = s }, func() error { return goleak.Find(fdbtest.IgnoreClient()) })
}

// open opens the shared server until the end of the test.
func open(t testing.TB) *fdbkv.Database {
	db, err := fdbkv.Open(t.Context(), server.ClusterFile(t), fdbkv.Options{ConnectTimeout: startTimeout})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}
