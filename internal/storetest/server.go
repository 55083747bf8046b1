//go:build fdb

package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/fdbkv"
	"github.com/futura-run/futura/internal/fdbtest"
)

// OnServer reports whether the stores lie on a server, where an operation takes
// milliseconds.
const OnServer = true

// openTimeout is how long the server may take to answer first, on the busiest machine.
const openTimeout = 2 * time.Minute

// shared is the server of this test binary, which Main starts.
var shared struct {
	mu     sync.Mutex
	server *fdbtest.Server
	parts  atomic.Int64
}

// Main starts a server, runs the tests of a package on it, checks that no
// goroutine is left, and ends the process.
func Main(m *testing.M) {
	fdbtest.Main(m, func(s *fdbtest.Server) {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		shared.server = s
	}, func() error { return goleak.Find(fdbtest.IgnoreClient()) })
}

// Server returns the server that the tests of this package share, nil where
// there is none.
func Server() *fdbtest.Server {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	return shared.server
}

// New returns an empty part of the server's keys, which looks like a whole
// store. It is closed at the end of the test at the latest. Where there is no
// server, the test is skipped.
func New(t testing.TB) kv.Database {
	db, _ := Shared(t)
	return part{db, fmt.Appendf(nil, "part-%d/", shared.parts.Add(1))}
}

// Shared returns the server's store, in which no other test of the package may
// use the same keys, and the address at which other processes open it.
func Shared(t testing.TB) (kv.Database, string) {
	file := Server().ClusterFile(t)
	db, err := fdbkv.Open(t.Context(), file, fdbkv.Options{ConnectTimeout: openTimeout})
	if err != nil {
		t.Fatalf("open the server: %v", err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return db, "fdb:" + file
}
