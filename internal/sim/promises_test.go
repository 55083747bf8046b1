package sim

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// withPromises are the options of runs that have promises beside everything else.
func withPromises(seed uint64, bug Bug) Options {
	return Options{Seed: seed, Promises: 12, Futures: 20, Workers: 2, Bug: bug}
}

// TestSimOfPromises runs seeds with promises that processes make and complete, die and stop in the
// midst of.
func TestSimOfPromises(t *testing.T) {
	t.Parallel()
	seeds := uint64(40)
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		_, err := Run(context.Background(), withPromises(1+seed, ""))
		require.NoError(t, err)
	}
}

// TestPlantedPromiseBugsAreFound plants each bug alone in runs of one seed after the other.
func TestPlantedPromiseBugsAreFound(t *testing.T) {
	t.Parallel()
	const most = 60
	for _, bug := range promiseBugs() {
		t.Run(string(bug.name), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(most) {
				if _, err := Run(context.Background(), withPromises(1+seed, bug.name)); err != nil {
					t.Logf("seed %d: %.300s", 1+seed, err)
					_, err = Run(context.Background(), withPromises(1+seed, ""))
					require.NoError(t, err, "it is found without the bug too")
					return
				}
			}
			t.Errorf("%s (%s): found by none of %d seeds", bug.name, bug.text, most)
		})
	}
}
