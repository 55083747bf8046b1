package sim

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var seed = flag.Uint64("seed", 0, "run this seed alone, and say what happens")

func TestSim(t *testing.T) {
	if *seed != 0 {
		report, err := Run(context.Background(), Options{Seed: *seed, Log: t.Logf})
		t.Logf("%+v", report)
		require.NoError(t, err)
		return
	}
	seeds := 40
	if os.Getenv("FUTURA_LONG") != "" {
		seeds = 2000
	}
	for n := range seeds {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			report, err := Run(context.Background(), Options{Seed: uint64(n + 1)})
			require.NoErrorf(t, err, "go test ./internal/sim -run TestSim -seed=%d -v", n+1)
			require.Positive(t, report.Realized)
		})
	}
}

func TestSeedRepeats(t *testing.T) {
	t.Parallel()
	a, err := Run(context.Background(), Options{Seed: 7})
	require.NoError(t, err)
	b, err := Run(context.Background(), Options{Seed: 7})
	require.NoError(t, err)
	require.Equal(t, a, b)
}
