package sim

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// cleanRuns are runs without a bug, each done once.
type cleanRuns struct {
	mu   sync.Mutex
	runs map[uint64]func() error
}

func (c *cleanRuns) run(seed uint64) error {
	c.mu.Lock()
	if c.runs[seed] == nil {
		c.runs[seed] = sync.OnceValue(func() error {
			_, err := Run(context.Background(), Options{Seed: seed})
			return err
		})
	}
	run := c.runs[seed]
	c.mu.Unlock()
	return run()
}

// recorded are seeds that find the bugs which the first one does not.
var recorded = map[Bug]uint64{
	"edge lost": 28, "used input removed": 2, "running input counts": 12, "fence open": 3,
	"result missed": 14, "item given twice": 13, "copies left behind": 2, "loss of one copy": 14,
	"newer result lost": 8, "rebuilds without conflicts": 2, "lineage removed": 47,
	"puts without conflicts": 7, "lost value computed": 15, "pin overlooked": 2, "pin for ever": 2,
	"session for ever": 2, "unpinned for ever": 2, "copies without conflicts": 14,
	"near forgotten": 3, "unique name kept": 6, "unique name not taken": 6,
	"unique name lost by a retry": 3, "unique name never freed": 7, "rate not used up": 27,
	"total width exceeded": 2, "slot leaked by a cancel": 10, "bundles mix lanes": 13,
	"job done twice": 3, "jobs skipped": 3, "append forgotten": 8, "parked job lost": 3,
	"overtaken in line": 6, "block without edges": 4, "member gathered twice": 11,
	"step unfenced": 14, "slot leaked by a reaper": 2, "member lost with its bundle": 3,
	"steps without conflicts": 14, "two leaders": 420, "bundle too heavy": 84,
	"rebuild not counted": 2, "rebuild charged": 2, "wrong counter reset": 2, "copy not counted": 2,
	"slots without conflicts": 2, "bundle too large": 4, "edges without conflicts": 2,
	"pause overlooked by bundles": 25, "place in line kept": 2, "record of the line kept": 2,
	"unique name overlooked": 3, "transfer of one more": 2, "progress unfenced": 3, "turn lost": 2,
	"width exceeded": 2, "object of a dead worker": 2, "handed over to nobody": 2,
}

// bugSeeds returns the seeds that are to find a bug, in this order: those from the
// first one on, and before them the one that is on record, also if it comes later: one
// seed of hundreds finds some bugs. A change of the workload makes other seeds find it.
func bugSeeds(name Bug, from, most uint64) (seeds []uint64) {
	if n := recorded[name]; n > 0 && (from == 1 || from <= n && n < from+most) {
		seeds = append(seeds, n)
	}
	for n := range most {
		seeds = append(seeds, from+n)
	}
	return seeds
}

// TestPlantedBugsAreFound plants each bug alone in runs of one seed after the
// other, until a run finds it. All of these seeds find nothing without a bug:
// TestSim says so in a short run, and this test in others.
func TestPlantedBugsAreFound(t *testing.T) {
	most := uint64(40)
	if testing.Short() || os.Getenv("FUTURA_LONG") == "1" {
		most = 400 // few are run while the seeds on record hold
	}
	from := cmp.Or(*first, 1)
	clean := cleanRuns{runs: map[uint64]func() error{}}
	names, texts := Bugs()
	lines, stale := make([]string, len(names)), make([]string, len(names))
	t.Cleanup(func() {
		t.Logf("%d bugs:\n%s", len(names), strings.Join(lines, "\n"))
		if late := strings.Join(stale, ""); late != "" && from == 1 {
			t.Logf("put these on record, they find their bugs at once:%s", late)
		}
	})
	for i, name := range names {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			lines[i] = fmt.Sprintf("%s (%s): found by none of the seeds %d to %d", name, texts[name], from, from+most-1)
			for tried, seed := range bugSeeds(name, from, most) {
				if !testing.Short() || seed > shortSeeds {
					require.NoErrorf(t, clean.run(seed), "seed %d without a bug", seed)
				}
				_, err := Run(context.Background(), Options{Seed: seed, Bug: name})
				if err != nil {
					found, _, _ := strings.Cut(err.Error(), "\n")
					lines[i] = fmt.Sprintf("%s (%s): %.240s", name, texts[name], found)
					if tried > 0 {
						stale[i] = fmt.Sprintf(" %q: %d,", name, seed)
					}
					return
				}
			}
			t.Error(lines[i])
		})
	}
}

// runClean runs some seeds without a bug: few of them in a short run.
func runClean(t *testing.T, short uint64, with func(uint64, Bug) Options) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = short
	}
	for seed := range seeds {
		_, err := Run(context.Background(), with(1+seed, ""))
		require.NoError(t, err)
	}
}

// findPlanted plants each bug alone in runs of one seed after the other, until one finds it.
func findPlanted(t *testing.T, bugs []plantedBug, with func(uint64, Bug) Options) {
	const most = 60
	for _, bug := range bugs {
		t.Run(string(bug.name), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(most) {
				if _, err := Run(context.Background(), with(1+seed, bug.name)); err != nil {
					t.Logf("seed %d: %.300s", 1+seed, err)
					_, err = Run(context.Background(), with(1+seed, ""))
					require.NoError(t, err, "it is found without the bug too")
					return
				}
			}
			t.Errorf("%s (%s): found by none of %d seeds", bug.name, bug.text, most)
		})
	}
}
