package sim

import "testing"

// withForks are the options of runs in which processes fork futures that fail, beside everything else.
func withForks(seed uint64, bug Bug) Options {
	return Options{Seed: seed, Forks: 8, Futures: 20, Workers: 2, Bug: bug}
}

// TestSimOfForks runs seeds with processes that fork, and die in the midst of it.
func TestSimOfForks(t *testing.T) {
	t.Parallel()
	runClean(t, 6, withForks)
}

// TestPlantedForkBugsAreFound plants each bug alone in runs of one seed after the other.
func TestPlantedForkBugsAreFound(t *testing.T) {
	t.Parallel()
	findPlanted(t, forkBugs(), withForks)
}
