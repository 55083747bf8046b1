package peerhead_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol/peerhead"
)

// TestSeveralBadPeersKeepNothingFromAnHonestOne has all bad peers at once, and three of each
// kind, beside an honest peer and beside a worker: of 200 futures, and of one alone, each begins
// at the honest one within a second after it could.
//
// One future alone that finds only peers of which nothing is known takes longer: any of them may
// be the honest one. So the first one has 0.7 s, the time of a trial, for each of the three peers
// that say nothing, and a moment for the others. With five of them, one more than a future
// remembers, it may also wait until the second may have it again: 3 s at most after that has put
// it back, which is 1.4 s after the begin at most.
func TestSeveralBadPeersKeepNothingFromAnHonestOne(t *testing.T) {
	sets := map[string][]string{"all": {"wrong status", "silence", "refusals", "slots", "slow"}}
	for name := range bad {
		if testing.Short() && name != "silence" {
			continue
		}
		sets["three of "+name] = []string{name, name, name}
	}
	for name, set := range sets {
		for _, peer := range []bool{true, false} {
			for _, n := range []int{1, 200} {
				t.Run(fmt.Sprintf("%s/%t/%d", name, peer, n), func(t *testing.T) {
					inWorld(t, peerhead.Options{}, func(w *world) {
						if peer {
							w.meet("honest", 8)
						} else {
							w.startWorker(8)
						}
						for i, way := range set { // who comes last is woken first
							w.meet(fmt.Sprintf("bad%d", i), math.MaxInt32, bad[way])
						}
						w.settle(time.Second)
						bound := time.Second
						if peer && n == 1 {
							if bound = 2400 * time.Millisecond; len(set) > layout.MaxRefusals {
								bound = 5 * time.Second
							}
						}
						for range 4 {
							took := w.serve(w.submit(n))
							w.Logf("%d: %v", n, took)
							require.LessOrEqual(w, took, bound)
							bound = time.Second
						}
					})
				})
			}
		}
	}
}
