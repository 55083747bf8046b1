package peerhead

import (
	"cmp"
	"flag"
	"math/rand/v2"
	"os"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	simSeed  = flag.Uint64("sim.seed", 0, "run this seed of the simulation alone")
	simFirst = flag.Uint64("sim.first", 0, "the first seed to run; 0 for a fixed one, with FUTURA_LONG for a fresh one")
	simSeeds = flag.Uint64("sim.seeds", 0, "how many seeds to run; 0 for as many as the mode has")
)

// TestSimulation runs heads with batches, peers and nodes of b7s in virtual time, on a
// network that loses, delays, repeats and cuts, and a store that fails. Heads and peers are
// real, and crash, stop and come back, with their stores and without; strangers forge
// results; some peers lie where peers check each other. Each future has to end once, with a
// result of its own; what a head acknowledges has to be stored; the audit has to find
// nothing at any moment. Once the faults end, all has to end in a bounded time, and nothing
// may be left: no order, no unacknowledged end, no cached result, nothing in the store of a
// peer, no goroutine.
//
// A seed draws the options, the workload, the faults and when they happen. Goroutines that
// run at one moment of virtual time do so in any order, and draw in that order, so two runs of
// a seed differ: what a rare order has found, a seed may not find again. The log of a failure
// says what led to it.
func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		report, err := simulate(t, *simSeed)
		t.Logf("%+v", report)
		require.NoError(t, err)
		return
	}
	from, n := uint64(1), uint64(8)
	if testing.Short() {
		n = 2
	}
	if os.Getenv("FUTURA_LONG") == "1" {
		from, n = uint64(rand.Uint32()), 300
	}
	from, n = cmp.Or(*simFirst, from), cmp.Or(*simSeeds, n)
	t.Logf("seeds from %d to %d", from, from+n-1)
	all := simTotals{sums: map[string]int{}}
	t.Cleanup(func() { all.check(t, n >= 100) })
	for i := range n {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			report, err := simulate(t, from+i)
			require.NoErrorf(t, err, "go test ./protocol/peerhead -run TestSimulation -sim.seed=%d", from+i)
			require.Positive(t, report.Realized)
			all.add(report)
		})
	}
}

// simTotals are sums over runs, by what they count.
type simTotals struct {
	mu     sync.Mutex
	sums   map[string]int
	healed time.Duration // the longest
}

func (s *simTotals) add(r simReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.healed = max(s.healed, r.Healed)
	fields := reflect.ValueOf(r)
	for i := range fields.NumField() {
		if n, counts := fields.Field(i).Interface().(int); counts {
			s.sums[fields.Type().Field(i).Name] += n
		}
	}
}

// check requires of many runs that everything has happened.
func (s *simTotals) check(t *testing.T, many bool) {
	t.Log(s.sums, "healed within", s.healed)
	for name, sum := range s.sums {
		require.Truef(t, sum > 0 || !many, "no seed has any: %s", name)
	}
}
