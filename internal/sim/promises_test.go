package sim

import "testing"

// withPromises are the options of runs that have promises beside everything else.
func withPromises(seed uint64, bug Bug) Options {
	return Options{Seed: seed, Promises: 12, Futures: 20, Workers: 2, Bug: bug}
}

// TestSimOfPromises runs seeds with promises that processes make and complete, die and stop in the
// midst of.
func TestSimOfPromises(t *testing.T) {
	t.Parallel()
	runClean(t, 8, withPromises)
}

// TestPlantedPromiseBugsAreFound plants each bug alone in runs of one seed after the other.
func TestPlantedPromiseBugsAreFound(t *testing.T) {
	t.Parallel()
	findPlanted(t, promiseBugs(), withPromises)
}
