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
// not the seed's. Half of them have actors, promises and forks too.
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
			if n%2 == 1 {
				o.Actors, o.Promises, o.Forks = 5, 10, 10
			}
			report, err := Run(context.Background(), o)
			t.Logf("%+v", report)
			require.NoError(t, err)
			require.Positive(t, report.Realized)
		})
	}
}
