package fdbmodel

import (
	"math/rand/v2"
	"os"
	"testing"
)

// mayMiss are transitions that operations hardly come to: a claim is blind, a
// reaper looks only at what is claimed, and a future that is promoted was
// delayed when it was read.
func mayMiss(t *transition) bool {
	switch t.event {
	case EventClaim:
		return true
	case EventReap:
		return t.outcome == Lost && t.from != Realized
	default:
		return t.from == Ready && t.event == EventPromote
	}
}

// TestMachineMeetsEveryTransition runs random operations under faults until each
// row of the table was met. It counts in the table, so it runs alone. The rows
// that few operations come to take minutes: FUTURA_LONG=1 runs it.
func TestMachineMeetsEveryTransition(t *testing.T) {
	if os.Getenv("FUTURA_LONG") != "1" {
		t.Skip("FUTURA_LONG=1 runs it")
	}
	met := make([]int, len(transitions))
	for i := range transitions {
		row := &transitions[i]
		apply := row.then.apply
		row.then.apply = func(r *Row, e *Event) {
			met[i]++
			apply(r, e)
		}
		defer func() { row.then.apply = apply }()
	}
	first := rand.Uint64()
	t.Logf("first seed %d", first)
	for n := range uint64(4000) {
		m := newMachine(t, first+n)
		for range 80 {
			m.step()
		}
		m.finale()
		left := 0
		for i := range transitions {
			if met[i] == 0 && !mayMiss(&transitions[i]) {
				left++
			}
		}
		if left == 0 {
			t.Logf("met in %d sequences", n+1)
			break
		}
	}
	for i := range transitions {
		row := &transitions[i]
		if met[i] == 0 && !mayMiss(row) {
			t.Errorf("%v, %v, %q was not met", row.from, row.event, row.when.text)
		}
	}
}
