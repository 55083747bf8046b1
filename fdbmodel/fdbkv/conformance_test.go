//go:build fdb

package fdbkv_test

import (
	"testing"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	kvtest.Run(t, kvtest.Options{New: func(t testing.TB) kv.Database { return open(t) }})
}
