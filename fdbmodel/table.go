package fdbmodel

import (
	"fmt"
	"strings"
)

// TransitionTable prints the table of transitions as Markdown.
func TransitionTable() string {
	var b strings.Builder
	b.WriteString("| state | event | when | becomes | what changes | outcome |\n")
	b.WriteString("| --- | --- | --- | --- | --- | --- |\n")
	for _, t := range Transitions {
		fmt.Fprintf(&b, "| %v | %v | %s | %v | %s | %v |\n", t.From, t.Event, t.When.Text, t.to, t.Then.text, t.Outcome)
	}
	return b.String()
}
