package sim

import (
	"cmp"
	"context"
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
	seed  = flag.Uint64("seed", 0, "run this seed alone, and say what happens")
	first = flag.Uint64("first", 0, "the first of the seeds to run; 0 for a fixed one, with FUTURA_LONG for a fresh one")
	seeds = flag.Uint64("seeds", 0, "how many seeds to run; 0 for as many as the mode has")
)

// shortSeeds is how many seeds a short run has, from 1 on.
const shortSeeds = 25

// seedRange returns the first seed to run and how many.
func seedRange(t *testing.T) (from, n uint64) {
	from, n = 1, 40
	if testing.Short() {
		n = shortSeeds
	}
	if os.Getenv("FUTURA_LONG") == "1" {
		from, n = uint64(rand.Uint32()), 2000
	}
	from, n = cmp.Or(*first, from), cmp.Or(*seeds, n)
	t.Logf("seeds from %d to %d", from, from+n-1)
	return from, n
}

// totals are sums over runs, by what they count.
type totals struct {
	mu   sync.Mutex
	sums map[string]int
}

// add adds what a run counted.
func (s *totals) add(r Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fields := reflect.ValueOf(r)
	for i := range fields.NumField() {
		if n, counts := fields.Field(i).Interface().(int); counts {
			s.sums[fields.Type().Field(i).Name] += n
		}
	}
}

func TestSim(t *testing.T) {
	t.Parallel()
	if *seed != 0 {
		report, err := Run(context.Background(), Options{Seed: *seed, Log: t.Logf})
		t.Logf("%+v", report)
		require.NoError(t, err)
		return
	}
	from, n := seedRange(t)
	all := totals{sums: map[string]int{}}
	t.Run("seeds", func(t *testing.T) {
		for i := range n {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				report, err := Run(context.Background(), Options{Seed: from + i})
				require.NoErrorf(t, err, "go test ./internal/sim -run TestSim -seed=%d -v", from+i)
				require.Positive(t, report.Realized)
				all.add(report)
			})
		}
	})
	if t.Log(all.sums); n < shortSeeds {
		return
	}
	for name, sum := range all.sums {
		require.Positivef(t, sum, "no seed has any: %s", name)
	}
	require.Greater(t, all.sums["Charged"], all.sums["Lost"])
	require.Greater(t, all.sums["Elsewhere"], all.sums["Again"])
}

// TestFewWorkersRebuild has one worker, and then two, which die and come back. At the
// end they are new ones, and have none of the results that they are asked for: each
// rebuilds all that it needs, alone, and what the other one had.
//
// It runs seeds until all of that has happened.
func TestFewWorkersRebuild(t *testing.T) {
	t.Parallel()
	const first, least, most = 23, 4, 60
	all := totals{sums: map[string]int{}}
	happened := func() bool {
		for _, name := range []string{"Taken", "Missing", "Rebuilds", "Blocks"} {
			if all.sums[name] == 0 {
				return false
			}
		}
		return true
	}
	for n := 0; n < least || !happened(); n++ {
		require.Lessf(t, n, most, "not all of it happens: %v", all.sums)
		report, err := Run(context.Background(), Options{
			Seed: uint64(first + n), Workers: 1 + n%2, Futures: 40, Chaos: 20 * time.Second,
		})
		require.NoErrorf(t, err, "seed %d with %d workers", first+n, 1+n%2)
		all.add(report)
	}
	t.Logf("seeds from %d on: %v", first, all.sums)
}

// TestColdRowsChangeNothing: a run is the same whether its rows are in memory or on disk.
func TestColdRowsChangeNothing(t *testing.T) {
	t.Parallel()
	from, n := seedRange(t)
	for i := range (n + 19) / 20 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			warm, err := Run(context.Background(), Options{Seed: from + i, Memory: 1 << 30})
			require.NoErrorf(t, err, "seed %d", from+i)
			cold, err := Run(context.Background(), Options{Seed: from + i, Memory: 1})
			require.NoErrorf(t, err, "seed %d", from+i)
			require.Equalf(t, warm, cold, "seed %d", from+i)
		})
	}
}

func TestSeedRepeats(t *testing.T) {
	t.Parallel()
	a, err := Run(context.Background(), Options{Seed: 7})
	require.NoError(t, err)
	b, err := Run(context.Background(), Options{Seed: 7})
	require.NoError(t, err)
	require.Equal(t, a, b)
}
