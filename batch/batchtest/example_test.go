package batchtest_test

import (
	"testing"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/batchtest"
	"github.com/futura-run/futura/batch/memstore"
)

// A store joins the suite by one call in a test of its own.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestStore(t *testing.T)
		batchtest.Run(t, batchtest.Harness{Open: func(*testing.T) batch.Store { return memstore.New() }})
	}
}
