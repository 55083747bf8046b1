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

// TestPlantedBugsAreFound plants each bug alone in runs of one seed after the
// other, until a run finds it. All of these seeds find nothing without a bug.
func TestPlantedBugsAreFound(t *testing.T) {
	most := uint64(40)
	if testing.Short() {
		most = 15
	}
	if os.Getenv("FUTURA_LONG") == "1" {
		most = 400
	}
	from := cmp.Or(*first, 1)
	clean := cleanRuns{runs: map[uint64]func() error{}}
	names, texts := Bugs()
	lines := make([]string, len(names))
	t.Cleanup(func() { t.Logf("%d bugs:\n%s", len(names), strings.Join(lines, "\n")) })
	for i, name := range names {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			lines[i] = fmt.Sprintf("%s (%s): found by none of the seeds %d to %d", name, texts[name], from, from+most-1)
			for seed := from; seed < from+most; seed++ {
				require.NoErrorf(t, clean.run(seed), "seed %d without a bug", seed)
				_, err := Run(context.Background(), Options{Seed: seed, Bug: name})
				if err != nil {
					found, _, _ := strings.Cut(err.Error(), "\n")
					lines[i] = fmt.Sprintf("%s (%s): %.240s", name, texts[name], found)
					return
				}
			}
			t.Error(lines[i])
		})
	}
}
