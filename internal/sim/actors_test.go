package sim

import "testing"

// withActors are the options of runs whose functions take turns on actors, beside everything else.
func withActors(seed uint64, bug Bug) Options {
	return Options{Seed: seed, Actors: 5, Futures: 40, Workers: 3, Bug: bug}
}

// TestSimOfActors runs seeds with functions that change actors, while workers die, stop and lose claims.
func TestSimOfActors(t *testing.T) {
	t.Parallel()
	runClean(t, 6, withActors)
}

// TestPlantedActorBugsAreFound plants each bug alone in runs of one seed after the other.
func TestPlantedActorBugsAreFound(t *testing.T) {
	t.Parallel()
	findPlanted(t, actorBugs(), withActors)
}
