package embedded

import (
	"testing"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/kvtest"
)

func TestConformanceMemory(t *testing.T) {
	kvtest.Run(t, kvtest.Options{New: func(t testing.TB) kv.Database { return OpenMemory(Options{}) }})
}
