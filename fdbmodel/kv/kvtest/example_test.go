package kvtest_test

import (
	"testing"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest"
)

// A driver joins the suite by one call in a test of its own.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestConformance(t *testing.T)
		kvtest.Run(t, kvtest.Options{New: func(testing.TB) kv.Database {
			return embedded.OpenMemory(embedded.Options{})
		}})
	}
}
