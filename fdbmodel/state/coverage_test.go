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

// place is where the table has a row: all that fit a state and an event for one reason. The state of what fits no
// row is 0.
type place struct {
	from  layout.State
	event state.EventKind
	when  string
}

// outOfReach are the rows that operations can't reach, and why.
var outOfReach = map[place]string{
	{layout.Blocked, state.EventUnblock, "it is a promise"}:  "a promise has no inputs: only damage has one checked",
	{layout.Blocked, state.EventUpstream, "it is a promise"}: "a promise has no inputs: only damage makes it a dependant",
}

// coverage counts which rows of the table are met.
type coverage []state.MetTransition

func (c coverage) left() (left []place) {
	for _, row := range c {
		at := place{row.From, row.Event, row.Condition}
		if outOfReach[at] == "" && row.Met == 0 {
			left = append(left, at)
		}
	}
	return left
}

// TestMachineMeetsEveryTransition runs random operations under faults until each row of the table was met, but for
// those out of reach, of which none may be. It counts in the table, so it runs alone. FUTURA_LONG=1 runs it, mostly
// for two or three minutes: 6,000 sequences, of about 70 ms each, are the most.
func TestMachineMeetsEveryTransition(t *testing.T) {
	if os.Getenv("FUTURA_LONG") != "1" {
		t.Skip("FUTURA_LONG=1 runs it")
	}
	if storetest.OnServer {
		t.Skip("what operations reach does not depend on the store")
	}
	const sequences, steps = 6000, 80
	counted, restore := state.CountTransitions()
	defer restore()
	rows, first := coverage(counted), rand.Uint64()
	t.Logf("first seed %d", first)
	for n := range uint64(sequences) {
		m := modeltest.NewMachine(t, first+n)
		for range steps {
			m.Step()
		}
		m.Finale()
		if len(rows.left()) == 0 {
			t.Logf("met in %d sequences", n+1)
			break
		}
	}
	for _, at := range rows.left() {
		t.Errorf("%v, %v, %q was not met in %d sequences of %d steps", at.from, at.event, at.when, sequences, steps)
	}
	excused := 0
	for _, row := range rows {
		why := outOfReach[place{row.From, row.Event, row.Condition}]
		if why == "" {
			continue
		}
		excused++
		if row.Met > 0 {
			t.Errorf("%v, %v, %q was met, and is said to be out of reach: %s", row.From, row.Event, row.Condition, why)
		}
	}
	if excused != len(outOfReach) {
		t.Errorf("%d rows are said to be out of reach, and the table has %d of them", len(outOfReach), excused)
	}
}
