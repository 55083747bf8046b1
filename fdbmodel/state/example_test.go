package state_test

import (
	"fmt"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/state"
)

// The life cycle is a table, applied by a pure function.
func ExampleNext() {
	row := layout.Row{Spec: &layout.Spec{Function: "go:price"}}
	token := layout.Token{Worker: "0123456789abcdef", Sequence: 1}
	for _, event := range []state.Event{
		{Kind: state.EventClaim, Token: token},
		{Kind: state.EventReap, Token: token},
		{Kind: state.EventRealize, Token: token, Result: &layout.Result{}},
	} {
		after, outcome := state.Next(row, event)
		fmt.Printf("%v: %v, %v\n", event.Kind, outcome, after.State())
		row = after
	}
	// Output:
	// claim: applied, claimed
	// reap: applied, delayed
	// realize: lost, delayed
}
