//go:build !fdb

package storetest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
)

// OnServer tells whether the stores lie on a server, where an operation takes
// milliseconds.
const OnServer = false

// Main runs the tests of a package, checks that no goroutine is left, and ends
// the process.
func Main(m *testing.M) { goleak.VerifyTestMain(m) }

// New returns an empty store, which is closed at the end of the test at the
// latest.
func New(t testing.TB) kv.Database {
	db := embedded.OpenMemory(embedded.Options{})
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return db
}
