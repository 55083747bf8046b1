package fdbmodel_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/internal/storetest"
)

// TestMachine runs random operations under faults and checks everything after
// each. FUTURA_LONG=1 runs many more, FUTURA_SEED=N repeats one.
func TestMachine(t *testing.T) {
	t.Parallel()
	sequences, steps, first := 200, 50, uint64(1)
	if testing.Short() {
		sequences = 60
	}
	if os.Getenv("FUTURA_LONG") != "" {
		sequences, steps, first = 4000, 120, rand.Uint64()
		t.Logf("first seed %d", first)
	}
	if storetest.OnServer {
		sequences, steps = sequences/10, steps*4/5
	}
	if seed, err := strconv.ParseUint(os.Getenv("FUTURA_SEED"), 10, 64); err == nil {
		sequences, steps, first = 1, 120, seed
	}
	const lanes = 8
	for lane := range lanes {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			t.Parallel()
			for n := lane; n < sequences; n += lanes {
				m := modeltest.NewMachine(t, first+uint64(n))
				for range steps {
					m.Step()
				}
				m.Finale()
			}
		})
	}
}
