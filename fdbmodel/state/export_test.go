package state

import "github.com/futura-run/futura/fdbmodel/layout"

// MetTransition is a row of the table of transitions, and how often it was met.
type MetTransition struct {
	From      layout.State
	Event     EventKind
	Condition string
	Outcome   Outcome
	Met       int
}

// CountTransitions counts in the table itself which rows are met, until restore
// is called.
func CountTransitions() (rows []MetTransition, restore func()) {
	rows = make([]MetTransition, len(transitions))
	applied := make([]func(*layout.Row, *Event), len(transitions))
	for i := range transitions {
		t := &transitions[i]
		rows[i] = MetTransition{From: t.from, Event: t.event, Condition: t.when.text, Outcome: t.outcome}
		apply := t.then.apply
		applied[i] = apply
		t.then.apply = func(r *layout.Row, e *Event) {
			rows[i].Met++
			apply(r, e)
		}
	}
	return rows, func() {
		for i := range transitions {
			transitions[i].then.apply = applied[i]
		}
	}
}
