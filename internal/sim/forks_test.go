package sim

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// withForks are the options of runs in which processes fork futures that fail, beside everything else.
func withForks(seed uint64, bug Bug) Options {
	return Options{Seed: seed, Forks: 8, Futures: 20, Workers: 2, Bug: bug}
}

// TestSimOfForks runs seeds with processes that fork, and die in the midst of it.
func TestSimOfForks(t *testing.T) {
	t.Parallel()
	seeds := uint64(40)
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		_, err := Run(context.Background(), withForks(1+seed, ""))
		require.NoError(t, err)
	}
}

// TestPlantedForkBugsAreFound plants each bug alone in runs of one seed after the other.
func TestPlantedForkBugsAreFound(t *testing.T) {
	t.Parallel()
	const most = 60
	for _, bug := range forkBugs() {
		t.Run(string(bug.name), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(most) {
				if _, err := Run(context.Background(), withForks(1+seed, bug.name)); err != nil {
					t.Logf("seed %d: %.300s", 1+seed, err)
					_, err = Run(context.Background(), withForks(1+seed, ""))
					require.NoError(t, err, "it is found without the bug too")
					return
				}
			}
			t.Errorf("%s (%s): found by none of %d seeds", bug.name, bug.text, most)
		})
	}
}
