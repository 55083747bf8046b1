package fdbmodel_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

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
		sequences, steps, first = 2000, 120, rand.Uint64()
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

// TestMachineWithAClockThatJumps sets the clock hours ahead and back between
// operations: every invariant holds, and everything ends.
func TestMachineWithAClockThatJumps(t *testing.T) {
	t.Parallel()
	seeds := uint64(3)
	if os.Getenv("FUTURA_LONG") == "1" {
		seeds = 200
	}
	if storetest.OnServer {
		seeds = max(1, seeds/20)
	}
	for seed := range seeds {
		m, ahead := modeltest.NewMachine(t, 7_000+seed), time.Duration(0)
		for i := range 150 {
			if i%15 == 14 {
				to := []time.Duration{3, -2, 0, -3, 1}[(int(seed)+i/15)%5] * time.Hour
				m.Clock.Advance(to - ahead)
				ahead = to
			}
			m.Step()
		}
		m.Finale()
	}
}
