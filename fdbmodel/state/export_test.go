package state

import (
	"fmt"
	"strings"

	"github.com/futura-run/futura/fdbmodel/layout"
)

// MetTransition is a row of the table of transitions, or of what fits none of them, and how often it was met.
type MetTransition struct {
	From      layout.State
	Event     EventKind
	Condition string
	Outcome   Outcome
	Met       int
}

// CountTransitions counts in the table itself which rows are met, until restore
// is called. What fits no row counts where its outcome is said, with no state.
func CountTransitions() (rows []MetTransition, restore func()) {
	rows = make([]MetTransition, len(transitions)+len(otherwise))
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
	held := make([]func(*layout.Row, *Event) bool, len(otherwise))
	for i := range otherwise {
		o, row := &otherwise[i], &rows[len(transitions)+i]
		*row = MetTransition{Event: o.event, Condition: o.when.text, Outcome: o.outcome}
		holds := o.when.holds
		held[i] = holds
		o.when.holds = func(r *layout.Row, e *Event) bool {
			fits := holds == nil || holds(r, e)
			if fits {
				row.Met++
			}
			return fits
		}
	}
	return rows, func() {
		for i := range transitions {
			transitions[i].then.apply = applied[i]
		}
		for i := range otherwise {
			otherwise[i].when.holds = held[i]
		}
	}
}

// TransitionTable returns the table of transitions as Markdown.
func TransitionTable() string {
	var b strings.Builder
	b.WriteString("| state | event | when | becomes | changes | outcome |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- |\n")
	for _, t := range transitions {
		fmt.Fprintf(&b, "| %v | %v | %s | %v | %s | %v |\n", t.from, t.event, t.when.text, t.to, t.then.text, t.outcome)
	}
	b.WriteString("\nAn event that fits no row changes nothing. Its outcome is that of the first row here, " +
		"else refused:\n\n")
	b.WriteString("| event | when | outcome |\n| --- | --- | --- |\n")
	for _, o := range otherwise {
		fmt.Fprintf(&b, "| %v | %s | %v |\n", o.event, o.when.text, o.outcome)
	}
	return b.String()
}
