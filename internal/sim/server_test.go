//go:build fdb

package sim

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/storetest"
)

// TestSimOnServer runs seeds on a server, whose own conflicts and versions are
// not the seed's.
func TestSimOnServer(t *testing.T) {
	seeds, first, chaos := 2, uint64(1), 15*time.Second
	if os.Getenv("FUTURA_LONG") != "" {
		seeds, first, chaos = 60, rand.Uint64(), time.Minute
		t.Logf("first seed %d", first)
	}
	for n := range seeds {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			o := Options{Seed: first + uint64(n), Futures: 30, Chaos: chaos, Database: storetest.New(t)}
			report, err := Run(context.Background(), o)
			t.Logf("%+v", report)
			require.NoError(t, err)
			require.Positive(t, report.Realized)
		})
	}
}
