package sim

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// withActors are the options of runs whose functions take turns on actors, beside everything else.
func withActors(seed uint64, bug Bug) Options {
	return Options{Seed: seed, Actors: 5, Futures: 40, Workers: 3, Bug: bug}
}

// TestSimOfActors runs seeds with functions that change actors, while workers die, stop and lose claims.
func TestSimOfActors(t *testing.T) {
	t.Parallel()
	seeds := uint64(40)
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		_, err := Run(context.Background(), withActors(1+seed, ""))
		require.NoError(t, err)
	}
}

// TestPlantedActorBugsAreFound plants each bug alone in runs of one seed after the other.
func TestPlantedActorBugsAreFound(t *testing.T) {
	t.Parallel()
	const most = 60
	for _, bug := range actorBugs() {
		t.Run(string(bug.name), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(most) {
				if _, err := Run(context.Background(), withActors(1+seed, bug.name)); err != nil {
					t.Logf("seed %d: %.300s", 1+seed, err)
					_, err = Run(context.Background(), withActors(1+seed, ""))
					require.NoError(t, err, "it is found without the bug too")
					return
				}
			}
			t.Errorf("%s (%s): found by none of %d seeds", bug.name, bug.text, most)
		})
	}
}
