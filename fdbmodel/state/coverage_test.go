package state_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/modeltest"
	"github.com/futura-run/futura/fdbmodel/state"
	"github.com/futura-run/futura/internal/storetest"
)

// mayMiss are transitions that operations hardly ever reach: a claim is blind,
// a reaper looks only at what is claimed, and a future that is promoted was
// delayed when it was read.
func mayMiss(t *state.MetTransition) bool {
	switch t.Event {
	case state.EventClaim:
		return true
	case state.EventReap:
		return t.Outcome == state.Lost && t.From != layout.Realized
	case state.EventUnblock, state.EventUpstream:
		return t.Outcome == state.Refused // of a promise, which has no inputs
	default:
		return t.From == layout.Ready && t.Event == state.EventPromote
	}
}

// TestMachineMeetsEveryTransition runs random operations under faults until
// each row of the table was met. It counts in the table, so it runs alone.
// Reaching the rarest rows takes minutes: FUTURA_LONG=1 runs it.
func TestMachineMeetsEveryTransition(t *testing.T) {
	if os.Getenv("FUTURA_LONG") != "1" {
		t.Skip("FUTURA_LONG=1 runs it")
	}
	if storetest.OnServer {
		t.Skip("what operations reach does not depend on the store")
	}
	rows, restore := state.CountTransitions()
	defer restore()
	first := rand.Uint64()
	t.Logf("first seed %d", first)
	for n := range uint64(4000) {
		m := modeltest.NewMachine(t, first+n)
		for range 80 {
			m.Step()
		}
		m.Finale()
		left := 0
		for i := range rows {
			if rows[i].Met == 0 && !mayMiss(&rows[i]) {
				left++
			}
		}
		if left == 0 {
			t.Logf("met in %d sequences", n+1)
			break
		}
	}
	for i := range rows {
		row := &rows[i]
		if row.Met == 0 && !mayMiss(row) {
			t.Errorf("%v, %v, %q was not met", row.From, row.Event, row.Condition)
		}
	}
}
